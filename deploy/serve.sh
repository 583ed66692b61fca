# shellcheck shell=bash
# Functions for deploy/quickstart, deploy/observe and deploy/wheel, sourced after deploy/steps.sh: build the server, and wait until a
# started one is ready. The caller sets `server` (its process id), `server_log`, `port_file`, and `scheme` and `curl_options` for
# its HTTP port.

build=${root:?}/build/release
# A proxy cannot reach this machine's loopback address.
export no_proxy="127.0.0.1,${no_proxy:-}"

build_programs() {
  # Whether GPUs are part of the build depends on the installed LibTorch.
  if [[ ! -f $build/build.ninja || $root/.venv/longshort-libtorch -nt $build/build.ninja ]]; then
    run_step "configure" "see the log; if a package is missing from it, run deploy/install" \
      cmake -S "$root" --preset release
  fi
  # Ninja's default number of jobs needs more memory than small machines have.
  run_step "build the server and the client" "see the log; a build that was interrupted can go on: run this again" \
    cmake --build --preset serve --parallel "$(nproc)"
}

# Prints the end of the server's log and exits.
fail_server() {
  printf '%sFAILED%s  %s; the end of %s:\n' "${red:-}" "${plain:-}" "$1" "${server_log:?}" >&2
  tail -n 20 "$server_log" >&2
  exit 1
}

# Sets `address` (gRPC) and `http`.
wait_until_ready() {
  local tries=0
  until [[ -s ${port_file:?} ]] && read_ports && get readyz >/dev/null; do
    if ! kill -0 "${server:?}" 2>/dev/null; then fail_server "the server ended while starting"; fi
    if ((++tries > 6000)); then fail_server "the server is not ready after 10 minutes"; fi
    sleep 0.1
  done
}

# shellcheck disable=SC2034 # for the caller
read_ports() {
  local ports
  ports=$(<"$port_file")
  [[ $ports =~ \"grpc\":\ *([0-9]+) ]] && address=127.0.0.1:${BASH_REMATCH[1]} || return 1
  [[ $ports =~ \"http\":\ *([0-9]+) ]] && http=${scheme:-http}://127.0.0.1:${BASH_REMATCH[1]} || return 1
}

# get PATH: prints the response of the server's HTTP port.
# shellcheck disable=SC2154 # set by the caller
get() { curl --silent --fail "${curl_options[@]}" "$http/$1"; }
