// Environment variables by which OpenMP binds or limits the threads of a process. libgomp reads them before main, and
// binds the process to one CPU: every thread that it starts later then runs there. So programs that link this file
// remove them from their environment before any library begins.
#pragma once

#include <string>
#include <vector>

namespace longshort {

// The removed variables, as NAME=VALUE. Those whose value does not bind (empty, "false") are not among them.
const std::vector<std::string>& RemovedThreadVariables();

}  // namespace longshort
