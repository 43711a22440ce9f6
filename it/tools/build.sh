# shellcheck shell=bash
# Builds the real parts that are Go programs, from the modules beside this file. Sourced by it/setup, after it/lib.sh.

go_parts=(etcd kubernetes kwok grpcurl spire helm)

# What of a part lies in target/it/bin.
files_of() {
    case $1 in
    kubernetes) echo kube-apiserver kube-controller-manager kube-scheduler kubectl ;;
    kwok) echo kwok kwok-stages.yaml ;;
    spire) echo spire-server spire-agent ;;
    *) echo "$1" ;;
    esac
}

# The version of a module that the go.mod of a part pins.
pinned() {
    sed -n "s|^[[:space:]]*$2 \\(v[^ ]*\\).*|\\1|p" "$repository/it/tools/$1/go.mod"
}

# What the linker is told: to leave out debug information, a third of the size; and the version of Kubernetes, since
# kubectl speaks to no server that does not know its own.
link_flags() {
    case $1 in
    kubernetes) echo "-s -w -X k8s.io/component-base/version.gitVersion=$(pinned kubernetes k8s.io/kubernetes)" ;;
    *) echo "-s -w" ;;
    esac
}

# SQLite, SPIRE's datastore, is C; all else is Go alone.
cgo() {
    if [ "$1" = spire ]; then echo 1; else echo 0; fi
}

# All that decides what a part is: one line per fact, kept beside what was built.
pin_of() {
    (
        cd "$repository/it/tools/$1"
        sha256sum go.mod go.sum
        echo "CGO_ENABLED=$(cgo "$1") -trimpath -ldflags '$(link_flags "$1")'"
    )
}

# Whether a part is built as its module says.
is_built() {
    local file
    for file in $(files_of "$1"); do
        [ -s "$bin/$file" ] || return 1
    done
    pin_of "$1" | cmp -s - "$bin/$1.pin"
}

# kwok does what its stages say, which it takes from a file; they come with its module.
kwok_stages() {
    local module file
    module=$(cd "$repository/it/tools/kwok" && GOWORK=off go list -mod=readonly -m -f '{{.Dir}}' sigs.k8s.io/kwok) ||
        return
    for file in "$module"/kustomize/stage/{node/fast,node/heartbeat-with-lease,pod/fast}/*.yaml; do
        case $file in */kustomization.yaml) continue ;; esac
        printf -- '---\n'
        cat "$file" || return
    done
}

# Builds a part into target/it/bin unless that is done.
build_part() {
    local part=$1 began=$SECONDS log=$target/it/$1.log into
    is_built "$part" && return
    command -v go >/dev/null 2>&1 ||
        fail "missing: Go, which builds $(files_of "$part"). Install the version of it/tools/$part/go.mod or newer" \
            "(https://go.dev/dl; Debian's golang-go where it is new enough)"
    if [ "$(cgo "$part")" = 1 ]; then
        command -v "${CC:-gcc}" >/dev/null 2>&1 ||
            fail "missing: a C compiler, which SQLite in $part needs: install gcc (a Debian package)"
    fi
    echo "setup: building $(files_of "$part") (some minutes, the first time)"
    fresh=$(mktemp -d "$target/it/fetch.XXXXXX")
    # A folder takes all programs of a part under their own names; a single one is named here.
    into=$fresh/
    case $part in etcd | grpcurl | helm | kwok) into=$fresh/$part ;; esac
    # One call for all programs of a part: what they share is compiled once.
    (
        cd "$repository/it/tools/$part"
        CGO_ENABLED=$(cgo "$part") GOFLAGS=-mod=readonly GOWORK=off \
            go build -trimpath -buildvcs=false -ldflags "$(link_flags "$part")" -o "$into" tool
    ) >"$log" 2>&1 || {
        tail -n 5 "$log" >&2
        fail "go could not build $part; its words are in $log. Without a network it needs a module cache or proxy" \
            "that has it/tools/$part (GOPROXY: now $(go env GOPROXY)); all parts together need 14 GB of disk (GOCACHE, GOMODCACHE)"
    }
    if [ "$part" = kwok ]; then
        kwok_stages >"$fresh/kwok-stages.yaml" ||
            fail "the module of kwok holds no kustomize/stage as it/tools/build.sh expects them: correct kwok_stages"
    fi
    # The pin goes first and comes last, so that an interrupted set-up is never taken for a finished one.
    rm -f "$bin/$part.pin"
    local file
    for file in $(files_of "$part"); do
        mv -f "$fresh/$file" "$bin/$file" ||
            fail "it/tools/$part builds no $file: correct files_of in it/tools/build.sh"
    done
    rmdir "$fresh"
    pin_of "$part" >"$bin/$part.pin"
    echo "setup: built $part in $((SECONDS - began)) s"
}
