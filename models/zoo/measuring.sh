# shellcheck shell=bash
# Common functions of the scripts models/zoo/*/measure and models/train/lra_text/measure, to be sourced: a scratch folder, the
# server, the client.
zoo=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
programs=$(cd "$zoo/../.." && pwd)/build/release/bin
repository=$zoo
server_options=()
scratch=$(mktemp -d)
server=

end_measuring() {
  [[ -z $server ]] || kill "$server" 2>/dev/null || true
  rm -rf "$scratch"
}
trap end_measuring EXIT

# expect_hash HASH WHAT CARD: checks that WHAT has this hash in the card's table.
expect_hash() {
  if ! grep -q "\`$1\`" "$3"; then
    echo "$2 has SHA-256 $1, which $3 does not name: the figure would not be comparable" >&2
    exit 1
  fi
}

# start_server: serves `repository`, by default models/zoo, with `server_options`, on a free port of the loopback.
start_server() {
  if [[ ! -x $programs/longshort-server || ! -x $programs/longshort ]]; then
    echo "no release build yet: run deploy/quickstart first" >&2
    exit 1
  fi
  "$programs/longshort-server" --model-repository="$repository" --listen=127.0.0.1:0 --http-listen=127.0.0.1:0 \
    --port-file="$scratch/ports" --log-level=error "${server_options[@]}" &
  server=$!
  until [[ -s $scratch/ports ]]; do
    kill -0 "$server" || exit 1
    sleep 0.1
  done
}

# client ARGUMENT...
client() {
  local port
  port=$(sed 's/.*"grpc": *\([0-9]*\).*/\1/' "$scratch/ports")
  "$programs/longshort" --server="127.0.0.1:$port" "$@"
}
