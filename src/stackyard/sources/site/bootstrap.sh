#!/bin/sh
# Fetch the spec of this guest from the controller and apply it. Needs a POSIX shell and curl, nothing else.
# It reads /etc/stackyard/guest.env; STACKYARD_ROOT puts another folder in the place of /.
# Exit status: 0 applied, 1 refused, 2 not reached or failed, 3 the spec is not valid.
set -eu
umask 077

root=${STACKYARD_ROOT:-}
settings=$root/etc/stackyard/guest.env
state=$root/var/lib/stackyard
retries=${STACKYARD_RETRIES:-30}

now() { date -u +%Y-%m-%dT%H:%M:%SZ; }

# Whoever waits for this guest is told, too; what a failed step has left says more.
fail() {
    printf 'stackyard-bootstrap: %s\n' "$2" >&2
    if [ ! -e "$state/failed.json" ] && mkdir -p "$state" 2>/dev/null; then
        said=$(printf '%s' "$2" | tr -d '"\\')
        printf '{"phase":"config","status":"failed","timestamp":"%s","error":"%s"}\n' "$(now)" "$said" \
            >"$state/failed.json" || :
    fi
    exit "$1"
}
rm -f "$state/failed.json"

# The values are taken as they stand: the file is never run.
server='' identity='' pin='' token=''
[ -r "$settings" ] || fail 1 "$settings cannot be read"
while IFS= read -r line || [ -n "$line" ]; do
    case $line in
    STACKYARD_SERVER=*) server=${line#*=} ;;
    STACKYARD_IDENTITY=*) identity=${line#*=} ;;
    STACKYARD_PIN=*) pin=${line#*=} ;;
    STACKYARD_TOKEN=*) token=${line#*=} ;;
    esac
done <"$settings"
[ -n "$server" ] || fail 1 "$settings names no STACKYARD_SERVER"
[ -n "$identity" ] || fail 1 "$settings names no STACKYARD_IDENTITY"
command -v curl >/dev/null 2>&1 || fail 1 'curl is not installed'

quoted() {
    printf '%s' "$1" | sed 's/[\\"]/\\&/g'
}

# Every user of a machine can read the arguments of a program; this goes through its standard input.
curl_settings() {
    printf 'url = "%s/spec/%s?format=shell"\n' "$(quoted "$server")" "$(quoted "$identity")"
    printf 'silent\nshow-error\nproto = "=https"\nconnect-timeout = 10\nmax-time = 60\n'
    printf 'retry = %s\nretry-delay = 2\nretry-connrefused\n' "$retries"
    if [ -n "$pin" ]; then
        # The key is known, so that the name and the authority of its certificate do not matter.
        printf 'insecure\npinnedpubkey = "%s"\n' "$(quoted "$pin")"
    fi
    if [ -n "$token" ]; then
        printf 'header = "Authorization: Bearer %s"\n' "$(quoted "$token")"
    fi
}

mkdir -p "$state"
fetched=$state/.apply.sh.new
trap 'rm -f "$fetched"' EXIT
status=$(curl_settings | curl --config - --output "$fetched" --write-out '%{http_code}') ||
    fail 2 "$server cannot be reached, or is not the one that is known"
case $status in
200) ;;
400 | 401 | 403) fail 1 "$server refuses: HTTP $status" ;;
422) fail 3 "the spec of $identity is not valid" ;;
*) fail 2 "$server answers HTTP $status" ;;
esac
mv -f "$fetched" "$state/apply.sh"
if sh "$state/apply.sh" >"$state/apply.log" 2>&1; then exit 0; fi
cat "$state/apply.log" >&2
fail 2 'the spec could not be applied; apply.log says why'
