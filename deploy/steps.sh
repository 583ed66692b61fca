# shellcheck shell=bash
# Functions for the scripts of deploy and for tests/run: steps with progress, and failures with advice.
# REQUIRES: `root` is the checkout.

step_logs=${root:?}/build/logs
mkdir -p "$step_logs"

if [[ -t 1 ]]; then
  bold=$'\033[1m' red=$'\033[31m' green=$'\033[32m' plain=$'\033[0m' clear_line=$'\r\033[K'
else
  bold='' red='' green='' plain='' clear_line=''
fi

# say TEXT...: prints a line in bold.
say() { printf '%s%s%s\n' "$bold" "$*" "$plain"; }

# Succeeds if this machine has an NVIDIA GPU with its driver.
has_gpu() { nvidia-smi --list-gpus 2>/dev/null | grep -q '^GPU 0'; }

# seconds_since START: prints the whole seconds since START, a value of $SECONDS.
seconds_since() { echo "$((SECONDS - $1)) s"; }

# Sets `cpu_seconds` to the processor time of the ended children of this shell, and of theirs.
_count_cpu_seconds() {
  local stat
  # cutime and cstime of proc(5), in hundredths of a second.
  read -r -a stat <"/proc/$BASHPID/stat"
  cpu_seconds=$(((stat[15] + stat[16]) / 100))
}

# A descriptor that never has data: a read with a timeout sleeps without starting a process.
exec {_never}<> <(:)

# Shows the elapsed time of a step and the last line of its log, until it or the script is ended. At a terminal, updates one line
# every second; elsewhere, prints a line every 30 seconds.
_watch_step() {
  local title=$1 log=$2 started=$SECONDS beat=0 last
  while kill -0 $$ 2>/dev/null; do
    read -r -t 1 -u "$_never" || true
    if [[ ! -t 1 ]] && ((++beat % 30 != 0)); then continue; fi
    last=$(tail -c 400 "$log" | tr '\r' '\n' | grep -v '^[[:space:]]*$' | tail -n 1 | cut -c 1-70 || true)
    if [[ -t 1 ]]; then
      printf '%s%s: %s  %s' "$clear_line" "$title" "$(seconds_since "$started")" "$last"
    else
      printf '  %s: %s  %s\n' "$title" "$(seconds_since "$started")" "$last"
    fi
  done
}

# try_step TITLE COMMAND...: runs a command with its output in the log `step_log`, and prints one line with the elapsed time.
# Returns the command's exit status; on failure also prints the end of the log.
try_step() {
  local title=$1 started=$SECONDS status=0 watcher cpu_seconds cpu_started took
  shift
  step_log=$step_logs/$(tr -c '[:alnum:]\n' '-' <<<"$title").log
  : >"$step_log"
  _count_cpu_seconds
  cpu_started=$cpu_seconds
  _watch_step "$title" "$step_log" &
  watcher=$!
  "$@" </dev/null >"$step_log" 2>&1 || status=$?
  kill "$watcher" 2>/dev/null || true
  wait "$watcher" 2>/dev/null || true
  _count_cpu_seconds
  took="$(seconds_since "$started"), CPU $((cpu_seconds - cpu_started)) s"
  if ((status == 0)); then
    printf '%s%sok%s      %s (%s)\n' "$clear_line" "$green" "$plain" "$title" "$took"
  else
    printf '%s%sFAILED%s  %s (%s, exit status %d)\n' "$clear_line" "$red" "$plain" "$title" "$took" "$status"
    tail -n 25 "$step_log" | sed 's/^/        | /'
    printf '        full log: %s\n' "$step_log"
  fi
  return "$status"
}

# run_step TITLE ADVICE COMMAND...: like try_step; on failure also prints the advice and exits.
run_step() {
  local title=$1 advice=$2
  shift 2
  if ! try_step "$title" "$@"; then
    printf '        what to do: %s\n' "$advice"
    exit 1
  fi
}
