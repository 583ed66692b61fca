// Why a client does not come to a server: gRPC says too little of it ("Socket closed").
#pragma once

#include <string>

#include "clients/cpp/connection_options.h"

namespace longshort {

// Connects to the server as a client with these options would, and says what does not work: nobody listens, one side
// alone speaks TLS, the authority or the name of a certificate is another, it has expired, the server wants or refuses
// a client's. A sentence; empty if the connection works, or nothing is known (addresses that are not host:port). Takes
// some seconds at the most.
std::string DiagnoseConnection(const ConnectionOptions& options);

}  // namespace longshort
