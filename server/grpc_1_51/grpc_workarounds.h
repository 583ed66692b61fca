// Settings and calls of gRPC 1.51 that have no public form. README.md says when each can go.
#pragma once

#include <grpcpp/grpcpp.h>

namespace longshort::server {

// Switches off the experiment `tcp_read_chunks`, unless GRPC_EXPERIMENTS names it: with it, gRPC 1.51 aborts the
// process when a connection sends more than 2 GiB without ever being read empty. Call it before gRPC's first use, when
// the process has one thread.
void SwitchOffChunkedReads();

// Debian's Abseil is built with its debug checks: it records the order of all of gRPC's locks, behind one lock for the
// process, and ends the process where two orders differ. Switches that off.
void SwitchOffLockOrderChecks();

// Sends HTTP/2's GOAWAY to all clients of a server that goes on answering: calls that they begin before they read it
// are served, later ones are theirs to send elsewhere, and a connection closes when its calls have ended.
//
// gRPC's public way is Server::Shutdown, which cancels each call that arrives from that moment on. Those clients would
// see CANCELLED, as if they had cancelled themselves.
//
// Connections that are made later, or that are in their handshake, get none: call it again. Thread: any.
void SendGoaways(grpc::Server& server);

}  // namespace longshort::server
