// Settings and calls of gRPC 1.51 without a public interface. README.md says when each can be removed.
#pragma once

#include <grpcpp/grpcpp.h>

namespace longshort::server {

// Switches off the experiment `tcp_read_chunks`, unless GRPC_EXPERIMENTS names it. With it, gRPC 1.51 aborts the
// process when a connection sends more than 2 GiB and its buffer never becomes empty. REQUIRES: gRPC has not been
// used, and the process has one thread.
void SwitchOffChunkedReads();

// Switches off Abseil's deadlock detection. Debian's Abseil is built with debug checks: it records the order of all of
// gRPC's locks, behind one global lock, and aborts the process if two orders differ.
void SwitchOffLockOrderChecks();

// Has OpenSSL keep no TLS sessions of servers, and no empty buffers of connections (two of 20 KB). gRPC has no option
// for these, nor for the cache of 20,480 sessions of TLS 1.2, which take up to 20 MB. Clients keep their sessions
// themselves, as tickets. Contexts that exist already stay as they are.
void LimitTlsMemory();

// Sends HTTP/2 GOAWAY to all clients while the server keeps answering. Calls that a client begins before it reads the
// GOAWAY are served; it must send later calls elsewhere. A connection closes when its calls have ended.
//
// gRPC's public function, Server::Shutdown, cancels each call that arrives from then on. Those clients would see
// CANCELLED, as if they had cancelled the call themselves.
//
// New connections, and those still in their handshake, get no GOAWAY: call it again. Thread: any.
void SendGoaways(grpc::Server& server);

}  // namespace longshort::server
