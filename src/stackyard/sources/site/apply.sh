#!/bin/sh
# Make this machine what its spec says. Made by stackyard; it may be run again at any time.
# STACKYARD_ROOT puts another folder in the place of /; what would be run is then only written down.
set -eu
umask 022

root=${STACKYARD_ROOT:-}
state=$root/var/lib/stackyard
written=$state/commands.log
report=''
mkdir -p "$state"
chmod 700 "$state"
[ -z "$root" ] || : >"$written"

now() { date -u +%Y-%m-%dT%H:%M:%SZ; }

# The running system is not ours to change while we work below another root.
run() {
    if [ -n "$root" ]; then printf '%s\n' "$*" >>"$written"; else "$@"; fi
}

# put PATH MODE TEXT: replace a file at once; `changed` says whether it was another one before.
# Never call it in a condition: a shell goes on after errors there.
put() {
    mkdir -p "$root${1%/*}"
    printf '%s\n' "$3" >"$root$1.new"
    chmod "$2" "$root$1.new"
    if [ -f "$root$1" ] && cmp -s "$root$1" "$root$1.new"; then
        rm -f "$root$1.new"
        changed=no
    else
        mv -f "$root$1.new" "$root$1"
        changed=yes
    fi
}

ended() {
    status=$?
    [ "$status" -eq 0 ] || mark failed
}

# mark STATUS: leave word of how it ended, for whoever waits for it.
mark() {
    rest=${report#"{"}
    printf '{"phase":"config","status":"%s","timestamp":"%s",%s\n' "$1" "$(now)" "${rest:-\}}" >"$state/.complete.new"
    mv -f "$state/.complete.new" "$state/$([ "$1" = complete ] && echo complete || echo failed).json"
}

# Who lost the connection to us may have been started anew while we still run: one after the other, or the
# last word of the first would stand after that of the second. A program that we started and that holds on
# to the lock does not keep the next one for ever.
alone() {
    if [ -z "$root" ] && command -v flock >/dev/null 2>&1; then
        exec 9>"$state/.lock"
        flock -w 60 9 || :
    fi
}

begin() {
    report=$(cat)
    alone
    rm -f "$state/complete.json" "$state/failed.json"
    trap ended EXIT
}

finish() {
    trap - EXIT
    mark complete
}

save_spec() {
    cat >"$state/.spec.yaml.new"
    chmod 600 "$state/.spec.yaml.new"
    if [ -f "$state/spec.yaml" ]; then
        if cmp -s "$state/spec.yaml" "$state/.spec.yaml.new"; then
            rm -f "$state/.spec.yaml.new"
            return 0
        fi
        cp -p "$state/spec.yaml" "$state/.spec.yaml.old"
        mv -f "$state/.spec.yaml.old" "$state/spec.yaml.prev"
    fi
    mv -f "$state/.spec.yaml.new" "$state/spec.yaml"
}

set_hostname() {
    put /etc/hostname 644 "$1"
    if [ "$changed" = yes ]; then run hostname "$1"; fi
}

set_timezone() {
    put /etc/timezone 644 "$1"
    if [ "$changed" = yes ]; then ln -sfn "/usr/share/zoneinfo/$1" "$root/etc/localtime"; fi
}

has_package() {
    if [ -n "$root" ]; then return 1; fi
    if command -v dpkg-query >/dev/null 2>&1; then
        dpkg-query --show --showformat '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'
    elif command -v apk >/dev/null 2>&1; then
        apk info --installed "$1" >/dev/null 2>&1
    else
        rpm --query "$1" >/dev/null 2>&1
    fi
}

# A run that was ended in the middle of an installation leaves work that the next one has to finish first.
mend_packages() {
    if [ -z "$root" ] && [ -n "$(dpkg --audit 2>/dev/null; ls /var/lib/dpkg/updates 2>/dev/null)" ]; then
        dpkg --force-confold --configure -a
    fi
}

# The system may be at it itself, shortly after it has booted; nothing says when it is done.
refresh_packages() {
    tries=1
    until run apt-get --quiet update; do
        [ "$tries" -lt 6 ] || return 1
        tries=$((tries + 1))
        sleep 5
    done
}

install_packages() {
    left=$#
    while [ "$left" -gt 0 ]; do
        package=$1
        shift
        left=$((left - 1))
        has_package "$package" || set -- "$@" "$package"
    done
    [ $# -gt 0 ] || return 0
    if [ -n "$root" ] || command -v apt-get >/dev/null 2>&1; then
        export DEBIAN_FRONTEND=noninteractive
        mend_packages
        refresh_packages
        run apt-get --quiet --yes -o DPkg::Lock::Timeout=300 install "$@"
    elif command -v dnf >/dev/null 2>&1; then
        run dnf --quiet --assumeyes install "$@"
    elif command -v apk >/dev/null 2>&1; then
        run apk add "$@"
    else
        printf 'stackyard: no known package manager for: %s\n' "$*" >&2
        return 1
    fi
}

# home_of USER: print where a user is at home; fails where there is no such user.
home_of() {
    [ -f "$root/etc/passwd" ] || return 1
    while IFS=: read -r name _ _ _ _ home _; do
        if [ "$name" = "$1" ]; then
            printf '%s\n' "$home"
            return 0
        fi
    done <"$root/etc/passwd"
    return 1
}

add_user() {
    home_of "$1" >/dev/null || run useradd --create-home --shell "$2" "$1"
    [ -z "$3" ] || run usermod --append --groups "$3" "$1"
}

# Between two marks in the file of a user stand our keys; what others wrote around them stays.
authorize_keys() {
    ours=$(cat)
    home=$(home_of "$1") || home=/home/$1
    file=$home/.ssh/authorized_keys
    mkdir -p "$root$home/.ssh"
    chmod 700 "$root$home/.ssh"
    others=''
    if [ -f "$root$file" ]; then
        others=$(sed '/^# stackyard begins$/,/^# stackyard ends$/d' "$root$file")
    fi
    all=$(
        [ -z "$others" ] || printf '%s\n' "$others"
        printf '# stackyard begins\n'
        [ -z "$ours" ] || printf '%s\n' "$ours"
        printf '# stackyard ends\n'
    )
    put "$file" 600 "$all"
    if [ "$changed" = yes ]; then run chown -R "$1:" "$home/.ssh"; fi
}

# Files with a dot in their name are not read by sudo.
set_sudo() {
    file=/etc/sudoers.d/50-stackyard-$(printf '%s' "$1" | tr . _)
    if [ -n "$2" ]; then
        put "$file" 440 "$2"
    else
        rm -f "$root$file"
    fi
}

set_sshd() {
    put /etc/ssh/sshd_config.d/50-stackyard.conf 644 "$(cat)"
    if [ "$changed" = yes ]; then
        run sh -c 'systemctl reload ssh 2>/dev/null || systemctl reload sshd 2>/dev/null || :'
    fi
}

enable_service() {
    run systemctl enable --now "$1"
}

# A service that is not installed does not run, which is what is wanted.
disable_service() {
    if [ -z "$root" ] && ! systemctl cat "$1" >/dev/null 2>&1; then return 0; fi
    run systemctl disable --now "$1"
}

