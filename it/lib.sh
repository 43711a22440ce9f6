# shellcheck shell=bash
# What setup, test and demo share. Sourced, never run.

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=${CARGO_TARGET_DIR:-$repository/target}
# Cargo takes a relative folder from where it is called.
case $target in /*) ;; *) target=$PWD/$target ;; esac
export CARGO_TARGET_DIR=$target

# Ends the script: what is wrong, then the way out.
fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# Pods are network namespaces with rules of their own, and an Envoy runs as another user: both need root.
need_root() {
    [ "$(uname -s)" = Linux ] || fail "this needs Linux (network namespaces and netfilter); run it in a Linux machine"
    [ "$(id -u)" = 0 ] || fail "this makes network namespaces and so needs root: run 'sudo it/${0##*/}'"
}

# Removes what a rig left behind whose process is gone. A namespace bears its maker's process id: aether-<pid>-<n>.
sweep() {
    local path name pid inside
    for path in /run/netns/aether-*-*; do
        [ -e "$path" ] || continue
        name=${path##*/}
        pid=${name#aether-}
        pid=${pid%%-*}
        case $pid in '' | *[!0-9]*) continue ;; esac
        [ -d "/proc/$pid" ] && continue
        for inside in $(ip netns pids "$name" 2>/dev/null); do
            kill -KILL "$inside" 2>/dev/null || true
        done
        ip netns delete "$name" 2>/dev/null || true
    done
    for path in /tmp/aether-it-*-*; do
        [ -d "$path" ] || continue
        pid=${path#/tmp/aether-it-}
        pid=${pid%%-*}
        case $pid in '' | *[!0-9]*) continue ;; esac
        [ -d "/proc/$pid" ] || rm -rf -- "$path"
    done
}
