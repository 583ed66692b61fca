// HTTP/2's GOAWAY to all clients of a gRPC server that goes on answering.
//
// gRPC's own way to say it is Server::Shutdown, which from that moment on cancels each call that comes, and calls do
// come until the client has heard of it: their clients would read CANCELLED, as if they had given up themselves.
#pragma once

#include <grpcpp/grpcpp.h>

namespace longshort {

// Has every connection say that no call should begin on it any more, and close once those that did have ended. Calls
// that come before the client has heard it reach the services; later ones are the client's to send elsewhere. Returns
// when it was begun. What connects later, or is shaking hands meanwhile, is not told: say it again. Thread: any.
void SendGoaways(grpc::Server& server);

}  // namespace longshort
