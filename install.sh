#!/bin/sh
# Install stackyard for the user who runs this: no root, no system package, one folder and one link.
#
#   curl -fsSL https://HOST/PATH/install.sh | sh -s -- --from https://HOST/PATH
#
# It fetches SHA256SUMS, the wheel and the pinned requirements from the folder of a release, compares each with
# its sum, and installs them into an environment of its own. `sh install.sh --help` lists the options.
# Python is started with -I: it takes no module from the folder that this is run in.
# Everything is in functions, and the last line calls the first: a download that was cut off runs nothing.

set -eu

usage() {
    cat <<'END'
Usage: sh install.sh [OPTION]...

Install stackyard into an environment of its own, and link `stackyard` and `pvelab` into a folder of PATH.

  --from PLACE    the release: a folder, or an https:// address     STACKYARD_INSTALL_FROM
                  (default: the folder of this script)
  --version X     take this version, where there are several        STACKYARD_INSTALL_VERSION
  --extras LIST   also install s3, postgres, schema or all          STACKYARD_INSTALL_EXTRAS
  --prefix DIR    the environment                                   STACKYARD_INSTALL_PREFIX
                  (default: ~/.local/share/stackyard/app)
  --bin DIR       where the links go (default: ~/.local/bin)        STACKYARD_INSTALL_BIN
  --python PROG   a Python of 3.11 or newer                         STACKYARD_INSTALL_PYTHON
  --sums SHA256   the sum that SHA256SUMS itself must have          STACKYARD_INSTALL_SUMS
  --uninstall     remove the environment and the links; sites and states stay
  --help          show this

An option is stronger than its variable. Without --sums, you trust the address that the release comes from; the
sums then show damage in transit, and files that do not belong together.
END
}

say() { printf 'install.sh: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

read_options() {
    from=${STACKYARD_INSTALL_FROM:-}
    version=${STACKYARD_INSTALL_VERSION:-}
    extras=${STACKYARD_INSTALL_EXTRAS:-}
    prefix=${STACKYARD_INSTALL_PREFIX:-}
    bin=${STACKYARD_INSTALL_BIN:-}
    python=${STACKYARD_INSTALL_PYTHON:-}
    sums=${STACKYARD_INSTALL_SUMS:-}
    action=install
    while [ $# -gt 0 ]; do
        case $1 in
            --help | -h) usage; exit 0 ;;
            --uninstall) action=uninstall; shift; continue ;;
            --from | --version | --extras | --prefix | --bin | --python | --sums)
                [ $# -ge 2 ] && [ -n "$2" ] || fail "$1 needs a value; see --help" ;;
            *) fail "there is no option $1; see --help" ;;
        esac
        case $1 in
            --from) from=$2 ;;
            --version) version=$2 ;;
            --extras) extras=$2 ;;
            --prefix) prefix=$2 ;;
            --bin) bin=$2 ;;
            --python) python=$2 ;;
            --sums) sums=$2 ;;
        esac
        shift 2
    done
    if [ -z "$prefix" ] || [ -z "$bin" ]; then
        [ -n "${HOME:-}" ] || fail "HOME is not set; give --prefix and --bin"
        prefix=${prefix:-${XDG_DATA_HOME:-$HOME/.local/share}/stackyard/app}
        bin=${bin:-$HOME/.local/bin}
    fi
    prefix=${prefix%/} bin=${bin%/}
    case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
    case $bin in /*) ;; *) bin=$PWD/$bin ;; esac
}

# --- What is fetched, and whether it is what was published

find_release() {
    if [ -z "$from" ]; then
        here=$(dirname "$0")
        [ -f "$here/SHA256SUMS" ] || fail "say where the release is: --from https://HOST/PATH, or a folder"
        from=$here
    fi
    from=${from%/}
    case $from in
        https://*) ;;
        http://127.0.0.1:* | http://localhost:*) ;;
        http://*) fail "$from is not encrypted; use https://" ;;
        *) [ -d "$from" ] || fail "there is no folder $from" ;;
    esac
}

fetch() {
    case $from in
        http*)
            address=$from/$(printf '%s' "$1" | sed 's/+/%2B/g')
            # What is asked for over https may not be sent on to an address without it.
            case $from in https*) protocols='=https' ;; *) protocols='=http' ;; esac
            if command -v curl >/dev/null 2>&1; then
                curl -fsSL --proto "$protocols" --proto-redir "$protocols" --retry 3 --max-time 600 -o "$work/$1" "$address"
            else
                "$python" -I -c 'import shutil, sys, urllib.request as u
with u.urlopen(sys.argv[1], timeout=60) as answer, open(sys.argv[2], "wb") as file:
    if answer.url.partition(":")[0] != sys.argv[1].partition(":")[0]:
        sys.exit("the server sends on to " + answer.url)
    shutil.copyfileobj(answer, file)' "$address" "$work/$1"
            fi || fail "$address cannot be fetched" ;;
        *) cp "$from/$1" "$work/$1" || fail "$from/$1 cannot be read" ;;
    esac
}

sum_of() {
    "$python" -I -c 'import hashlib, sys
print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest())' "$1"
}

fetch_checked() {
    wanted=$(awk -v name="$1" '$2 == name || $2 == "*" name { print $1 }' "$work/SHA256SUMS")
    [ -n "$wanted" ] || fail "the release has no $1 (it is not in SHA256SUMS)"
    fetch "$1"
    found=$(sum_of "$work/$1")
    [ "$found" = "$wanted" ] || fail "$1 is not what was published: its SHA-256 is $found, not $wanted; nothing was installed"
}

fetch_release() {
    fetch SHA256SUMS
    if [ -n "$sums" ]; then
        found=$(sum_of "$work/SHA256SUMS")
        [ "$found" = "$sums" ] || fail "SHA256SUMS is not the one you asked for: its SHA-256 is $found; nothing was installed"
    fi
    wheels=$(awk '{ sub(/^\*/, "", $2); print $2 }' "$work/SHA256SUMS" |
        grep -E '^stackyard-[A-Za-z0-9.+]+-py3-none-any\.whl$' || true)
    if [ -n "$version" ]; then
        wheels=$(printf '%s\n' "$wheels" | grep -F -- "stackyard-$version-py3" || true)
    fi
    [ -n "$wheels" ] || fail "the release has no wheel of stackyard${version:+ $version}"
    [ "$(printf '%s\n' "$wheels" | wc -l)" -eq 1 ] ||
        fail "the release has several versions; choose one with --version: $(printf '%s' "$wheels" | tr '\n' ' ')"
    wheel=$wheels
    fetch_checked "$wheel"
    fetch_checked requirements.txt
    for extra in $(printf '%s' "$extras" | tr ',' ' '); do
        case $extra in
            s3 | postgres | schema | all) fetch_checked "requirements-$extra.txt" ;;
            *) fail "there is no extra $extra; there are s3, postgres, schema and all" ;;
        esac
    done
}

# --- The environment

find_python() {
    if [ -n "$python" ]; then
        set -- "$python"
    else
        set -- python3 python3.14 python3.13 python3.12 python3.11
    fi
    for candidate do
        if "$candidate" -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            python=$(command -v "$candidate")
            return
        fi
    done
    fail "stackyard needs Python 3.11 or newer${python:+, and $python is none}; name one with --python"
}

make_environment() {
    if command -v uv >/dev/null 2>&1; then
        made_by=uv
        uv venv --quiet --python "$python" "$new"
        return
    fi
    made_by=venv
    "$python" -I -m venv "$new" >"$work/venv.log" 2>&1 && return
    rm -rf "$new"
    # Debian keeps ensurepip in a package of its own; a pip of the system can serve the environment.
    if "$python" -I -m pip --version >/dev/null 2>&1 && "$python" -I -m venv --without-pip "$new"; then
        made_by=pip
        return
    fi
    cat "$work/venv.log" >&2
    fail "an environment cannot be made; install uv, or on Debian: apt install python3-venv"
}

install_with() {
    case $made_by in
        uv) uv pip install --quiet --compile-bytecode --python "$new/bin/python" "$@" ;;
        venv) PIP_USER=0 "$new/bin/python" -I -m pip --disable-pip-version-check install --quiet "$@" ;;
        pip) PIP_USER=0 "$python" -I -m pip --disable-pip-version-check --python "$new/bin/python" install --quiet "$@" ;;
    esac
}

install_release() {
    new=$prefix.new.$$
    mkdir -p "$(dirname "$prefix")" "$bin"
    make_environment
    set -- -r "$work/requirements.txt"
    for extra in $(printf '%s' "$extras" | tr ',' ' '); do
        set -- "$@" -r "$work/requirements-$extra.txt"
    done
    install_with --require-hashes "$@" || fail "what stackyard needs cannot be installed; nothing was changed"
    install_with --no-deps "$work/$wheel" || fail "the wheel cannot be installed; nothing was changed"
    "$new/bin/python" -I -m stackyard --version >/dev/null || fail "the new stackyard does not start; nothing was changed"
    [ "$made_by" = venv ] && "$new/bin/python" -I -m pip --quiet uninstall -y pip setuptools >/dev/null 2>&1 || true
    # Written last: what has it was made by this script, and may be replaced or removed by it.
    printf 'wheel %s\nfrom %s\nextras %s\nby %s\n' "$wheel" "$from" "${extras:-none}" "$made_by" \
        >"$new/stackyard-install.txt"
}

# Extras that are installed stay: an upgrade takes nothing away.
keep_extras() {
    [ -f "$prefix/stackyard-install.txt" ] || return 0
    kept=$(sed -n 's/^extras //p' "$prefix/stackyard-install.txt")
    [ "$kept" = none ] || extras=$kept${extras:+,$extras}
    extras=$(printf '%s' "$extras" | tr ', ' '\n\n' | sort -u | tr '\n' ',')
    extras=${extras#,} extras=${extras%,}
}

check_links() {
    for name in stackyard pvelab; do
        [ -e "$bin/$name" ] || [ -L "$bin/$name" ] || continue
        case $(readlink "$bin/$name" 2>/dev/null || true) in
            */bin/"$name") [ ! -d "$bin/$name" ] && continue ;;
        esac
        fail "$bin/$name is there and was not made by install.sh; remove it, or choose another folder with --bin"
    done
}

put_in_place() {
    old=$prefix.old.$$
    [ ! -e "$prefix" ] || mv "$prefix" "$old"
    if ! mv "$new" "$prefix"; then
        [ ! -e "$old" ] || mv "$old" "$prefix"
        fail "$prefix cannot be written; nothing was changed"
    fi
    # The programs in an environment name the folder that it was made in.
    for name in stackyard pvelab; do
        "$python" -I -c 'import sys
path, old, new = sys.argv[1:]
text = open(path).read().replace(old, new)
open(path, "w").write(text)' "$prefix/bin/$name" "$new" "$prefix"
    done
    if ! shown=$("$prefix/bin/stackyard" --version); then
        mv "$prefix" "$new"
        [ ! -e "$old" ] || mv "$old" "$prefix"
        fail "the new stackyard does not start from $prefix; nothing was changed"
    fi
    for name in stackyard pvelab; do
        ln -sfn "$prefix/bin/$name" "$bin/$name"
    done
    rm -rf "$old"
}

check_prefix() {
    # An empty folder is nobody's work.
    [ ! -d "$prefix" ] || rmdir "$prefix" 2>/dev/null || true
    if [ -e "$prefix" ] && [ ! -f "$prefix/stackyard-install.txt" ]; then
        fail "$prefix is there and was not made by install.sh; choose another with --prefix"
    fi
}

install() {
    check_prefix
    check_links
    keep_extras
    find_python
    find_release
    fetch_release
    install_release
    put_in_place
    say "installed $shown in $prefix"
    case :$PATH: in
        *:"$bin":*) ;;
        *) say "$bin is not in PATH; add it: export PATH=\"$bin:\$PATH\"" ;;
    esac
    say "next: stackyard doctor"
}

uninstall() {
    [ -e "$prefix" ] || fail "there is nothing in $prefix"
    check_prefix
    for name in stackyard pvelab; do
        if [ "$(readlink "$bin/$name" 2>/dev/null || true)" = "$prefix/bin/$name" ]; then
            rm -f "$bin/$name"
        fi
    done
    rm -rf "$prefix" "$prefix".new.[0-9]* "$prefix".old.[0-9]*
    say "removed $prefix; sites, states and caches are where they were"
}

clean_up() {
    rm -rf "$work"
    [ -z "$new" ] || rm -rf "$new"
}

main() {
    new=
    read_options "$@"
    work=$(mktemp -d)
    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    "$action"
}

main "$@"
