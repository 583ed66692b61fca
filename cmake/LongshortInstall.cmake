# What `cmake --install` adds to the programs: licence texts, and the demo models.
#   bin/                        longshort-server, longshort, longshort-train
#   share/doc/longshort/        LICENSE, NOTICE, CHANGELOG.md
#   share/longshort/models/     the zoo: longshort-server --model-repository=PREFIX/share/longshort/models

install(FILES LICENSE NOTICE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY models/zoo/ DESTINATION ${CMAKE_INSTALL_DATADIR}/longshort/models)
