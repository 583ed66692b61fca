# shellcheck shell=bash
# Common functions of the scripts in models/zoo and models/train/lra_text, and of tools/batches/measure, to be sourced:
# arguments, a scratch folder, the trainer, the server, the client.
zoo=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
programs=$(cd "$zoo/../.." && pwd)/build/release/bin
repository=$zoo
server_options=()
scratch=$(mktemp -d)
server=
address=

end_script() {
  [[ -z $server ]] || kill "$server" 2>/dev/null || true
  rm -rf "$scratch"
}
trap end_script EXIT

# expect_arguments MINIMUM MAXIMUM USAGE ARGUMENT...: explains the script if that is wanted, or if the number of arguments is wrong.
expect_arguments() {
  local minimum=$1 maximum=$2 usage=$3
  shift 3
  if [[ ${1:-} == --help ]]; then
    echo "$usage"
    exit 0
  fi
  if (($# < minimum || $# > maximum)); then
    echo "$usage" >&2
    exit 2
  fi
}

# expect_program NAME: checks that the release build has it.
expect_program() {
  if [[ ! -x $programs/$1 ]]; then
    echo "$programs/$1 is not there: run deploy/quickstart, then cmake --build build/release --target $1" >&2
    exit 1
  fi
}

# expect_hash HASH WHAT CARD: checks that WHAT has this hash in the card's table.
expect_hash() {
  if ! grep -q "\`$1\`" "$3"; then
    echo "$2 has SHA-256 $1, which $3 does not name: the figure would not be comparable" >&2
    exit 1
  fi
}

# unpack_enwiki ARCHIVE: writes the text of enwiki's card to $scratch/all.xml, and its parts to train.xml and held_out.xml there.
unpack_enwiki() {
  local text=$scratch/all.xml train_size
  bzip2 -dc "$1" >"$text"
  expect_hash "$(sha256sum <"$text" | cut -d' ' -f1)" "the text of $1" "$zoo/enwiki/README.md"
  train_size=$(($(stat -c %s "$text") * 95 / 100))
  head -c "$train_size" "$text" >"$scratch/train.xml"
  tail -c "+$((train_size + 1))" "$text" >"$scratch/held_out.xml"
}

# train_recipe CONFIG WINDOW RANK SEEDS OPTION...: trains a classifier by the configuration with this w and r, once for each of the
# seeds, with the options, in the current folder. Continues what was stopped.
train_recipe() {
  local run seed config=config_$2_$3.json
  sed "s/\"window_size\": 8/\"window_size\": $2/; s/\"projection_rank\": 32/\"projection_rank\": $3/" "$1" >"$config"
  for seed in $4; do
    run=$2_$3_seed_$seed
    "$programs/longshort-train" text-classifier --config="$config" --train=train.jsonl --out="$run/1" --batch=32 --group=4 --shards=2 \
      --schedule=one-cycle --initial-weights=official --learning-rate=1e-4 --seed="$seed" "${@:5}" 2>&1 | tee --append --ignore-interrupts "$run.log"
  done
}

# start_server: serves `repository`, by default models/zoo, with `server_options`, on a free port of the loopback.
start_server() {
  expect_program longshort-server
  expect_program longshort
  "$programs/longshort-server" --model-repository="$repository" --listen=127.0.0.1:0 --http-listen=127.0.0.1:0 \
    --port-file="$scratch/ports" --log-level=error "${server_options[@]}" &
  server=$!
  until [[ -s $scratch/ports ]]; do
    kill -0 "$server" || exit 1
    sleep 0.1
  done
  address=127.0.0.1:$(sed 's/.*"grpc": *\([0-9]*\).*/\1/' "$scratch/ports")
}

# client ARGUMENT...
client() { "$programs/longshort" --server="$address" "$@"; }

# classify_texts MODEL FILE OPTION...: writes the classification of each text of a JSON Lines file to $scratch/answers.jsonl.
classify_texts() {
  rm -rf "$scratch/texts"
  mkdir "$scratch/texts"
  # A file for each text: their names sort like the lines.
  python3 -c 'import json, pathlib, sys
for number, line in enumerate(open(sys.argv[1], encoding="utf-8")):
    pathlib.Path(sys.argv[2], f"{number:09}.txt").write_bytes(json.loads(line)["text"].encode())' "$2" "$scratch/texts"
  client --model="$1" classify --json --truncate "${@:3}" "$scratch/texts" >"$scratch/answers.jsonl"
}

# measure_texts MODEL TITLE FILE: classifies the texts of a JSON Lines file, and prints how many labels are right.
measure_texts() {
  classify_texts "$1" "$3"
  python3 "$zoo/accuracy.py" "$2" --labels="$3" <"$scratch/answers.jsonl"
}
