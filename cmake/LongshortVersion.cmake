# The version that programs print: project(VERSION) as a header. Link `longshort_version`, include "longshort_version.h".

configure_file(${PROJECT_SOURCE_DIR}/cmake/version.h.in ${PROJECT_BINARY_DIR}/version/longshort_version.h @ONLY)
add_library(longshort_version INTERFACE)
target_include_directories(longshort_version INTERFACE ${PROJECT_BINARY_DIR}/version)
