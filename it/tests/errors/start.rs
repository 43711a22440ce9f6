//! What is refused before anything starts.

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use it::places;
use it::process::{Process, Spec};
use it::world::World;
use tempfile::TempDir;

/// Nobody, who may read what all may.
const NOBODY: u32 = 65534;

/// How a command ends that is to be refused: its exit status and its words. Not to end is a failure.
fn refused(args: &[&str], user: Option<u32>) -> Result<(i32, String)> {
    let folder = places::folder()?;
    // The other user may not reach the repository.
    let program = folder.path().join("aether");
    if user.is_some() {
        std::fs::copy(places::program("aether")?, &program)?;
    } else {
        std::os::unix::fs::symlink(places::program("aether")?, &program)?;
    }
    let mut spec = Spec::new(&program, args, &folder.path().join("log"));
    spec.user = user;
    let mut process = Process::start(&spec)?;
    let status = process.wait(Duration::from_secs(10))?;
    Ok((status.code().unwrap_or(-1), process.log()))
}

/// A folder for a socket that any user may make, and the path of the socket in it.
fn socket() -> Result<(TempDir, String)> {
    let folder = places::folder()?;
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777))?;
    let path = folder.path().join("xds.sock").display().to_string();
    Ok((folder, path))
}

/// Nothing of a server that was refused is left: no socket, no bound port.
fn nothing_started(socket: &str) {
    assert!(!Path::new(socket).exists(), "{socket} was left behind");
}

#[test]
fn a_wrong_folder_is_refused_with_the_way_out() -> Result<()> {
    let world = World::new()?;
    world.put_text("a.yaml", "# nothing")?;
    let closed = places::folder()?;
    std::fs::set_permissions(closed.path(), std::fs::Permissions::from_mode(0o700))?;
    let missing = world.path().join("nowhere");
    let file = world.path().join("a.yaml");
    for (path, user, words) in [
        (missing.as_path(), None, "there is no folder"),
        (&file, None, "is no folder"),
        (closed.path(), Some(NOBODY), "may not be listed"),
    ] {
        let (_folder, socket) = socket()?;
        let path = path.to_str().unwrap();
        for (command, expected) in [
            (&["serve", "--xds-address", "none", "--xds-socket", &socket][..], 1),
            (&["render", "--node", "pod/a/b"], 1),
            (&["check"], 2),
        ] {
            let args = [command, &["--manifests", path]].concat();
            let (code, said) = refused(&args, user)?;
            assert_eq!(code, expected, "{args:?}: {said}");
            let last = said.lines().last().unwrap_or_default();
            assert!(last.starts_with("aether: ") && last.contains(words), "{args:?}: {said}");
            assert!(last.contains(path), "{args:?}: {said}");
            assert!(!said.contains("panicked"), "{said}");
        }
        nothing_started(&socket);
    }
    Ok(())
}

#[test]
fn a_file_that_may_not_be_read_is_reported_and_others_are_served() -> Result<()> {
    let world = World::new()?;
    world.put("web", &super::service("web", 1, 80))?;
    world.put("caller", &[super::pod("caller", 1)])?;
    world.put("secret", &super::service("secret", 2, 80))?;
    let open = |file: &str, mode| {
        std::fs::set_permissions(world.path().join(file), std::fs::Permissions::from_mode(mode))
    };
    open("web.yaml", 0o644)?;
    open("caller.yaml", 0o644)?;
    open("secret.yaml", 0o600)?;
    let (code, said) =
        refused(&["check", "--manifests", world.path().to_str().unwrap()], Some(NOBODY))?;
    assert_eq!(code, 1, "{said}");
    for words in [
        "UnreadableFile",
        "secret.yaml",
        "ermission denied",
        "let the user that aether runs as read it",
    ] {
        assert!(said.contains(words), "{words} in {said}");
    }
    assert!(said.contains("1 problem, 0 warnings; 1 mesh service and 1 managed pod"), "{said}");
    Ok(())
}

#[test]
fn an_address_in_use_is_refused_and_left_alone() -> Result<()> {
    let world = World::new()?;
    let manifests = world.path().to_str().unwrap();
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = taken.local_addr()?.to_string();
    let serve = ["serve", "--manifests", manifests];
    let (folder, socket) = socket()?;
    let args = [&serve[..], &["--xds-address", &address, "--xds-socket", &socket]].concat();
    let (code, said) = refused(&args, None)?;
    assert_eq!(code, 1, "{said}");
    for words in ["--xds-address", &address, "another process has the port", "choose another"] {
        assert!(said.contains(words), "{words} in {said}");
    }
    nothing_started(&socket);

    let serve = [&serve[..], &["--xds-address", "none", "--xds-socket", &socket]].concat();
    let other = UnixListener::bind(&socket)?;
    let (code, said) = refused(&serve, None)?;
    assert_eq!(code, 1, "{said}");
    for words in ["--xds-socket", &socket, "served by another process", "choose another path"] {
        assert!(said.contains(words), "{words} in {said}");
    }
    // The other one still has it.
    std::os::unix::net::UnixStream::connect(&socket)?;
    drop(other);
    std::fs::remove_file(&socket)?;

    std::fs::write(&socket, "precious")?;
    let (code, said) = refused(&serve, None)?;
    assert!(code == 1 && said.contains("exists and is no socket: remove it"), "{said}");
    assert_eq!(std::fs::read_to_string(&socket)?, "precious");

    // A folder that may not be written to, by somebody who may not.
    std::fs::remove_file(&socket)?;
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
    std::fs::set_permissions(world.path(), std::fs::Permissions::from_mode(0o755))?;
    let (code, said) = refused(&serve, Some(NOBODY))?;
    assert!(code == 1 && said.contains("the folder must be writable"), "{said}");
    Ok(())
}

#[test]
fn a_socket_that_a_dead_process_left_is_taken_over() -> Result<()> {
    let world = World::new()?;
    let (folder, socket) = socket()?;
    drop(UnixListener::bind(&socket)?);
    assert!(Path::new(&socket).exists());
    serves_and_takes_its_socket_along(&world, &folder, &socket, false)
}

#[test]
fn the_folder_of_the_socket_is_made_and_that_is_said() -> Result<()> {
    let world = World::new()?;
    let (folder, _) = socket()?;
    let socket = folder.path().join("new/er/xds.sock").display().to_string();
    serves_and_takes_its_socket_along(&world, &folder, &socket, true)
}

/// Starts a server on this socket and stops it; whether it says that it made the socket's folder.
fn serves_and_takes_its_socket_along(
    world: &World,
    folder: &TempDir,
    socket: &str,
    made: bool,
) -> Result<()> {
    let args = [
        "serve",
        "--manifests",
        world.path().to_str().unwrap(),
        "--xds-address",
        "none",
        "--xds-socket",
        socket,
    ];
    let mut server =
        Process::start(&Spec::new(&places::program("aether")?, args, &folder.path().join("log")))?;
    let start = std::time::Instant::now();
    while std::os::unix::net::UnixStream::connect(socket).is_err() {
        assert!(start.elapsed() < Duration::from_secs(10), "{}", server.log());
        std::thread::sleep(Duration::from_millis(10));
    }
    // Told to stop, it takes its socket along.
    server.signal(nix::sys::signal::Signal::SIGTERM)?;
    assert!(server.wait(Duration::from_secs(10))?.success(), "{}", server.log());
    nothing_started(socket);
    let log = server.log();
    let told = log.lines().find(|line| line.contains("created the folder of the xDS socket"));
    assert_eq!(
        told.is_some_and(|line| line.contains("INFO") && line.contains("new/er")),
        made,
        "{log}"
    );
    Ok(())
}

#[test]
fn a_wrong_option_is_refused_before_anything_starts() -> Result<()> {
    let world = World::new()?;
    let manifests = world.path().to_str().unwrap();
    for (wrong, words) in [
        (&["--capture-mode", "all"][..], &["--capture-mode", "redirect-all", "scoped"][..]),
        (
            &["--xds-address", "localhost:18000"],
            &["--xds-address", "localhost:18000", "127.0.0.1:18000"],
        ),
        (&["--xds-address", "127.0.0.1:65536"], &["--xds-address", "127.0.0.1:65536"]),
        (&["--server-first-ports", "22,0"], &["--server-first-ports", "\"0\"", "1 to 65535"]),
        (&["--server-first-ports", "65536"], &["--server-first-ports", "65536", "1 to 65535"]),
        (&["--dns-upstream", "10.96.0.10"], &["--dns-filter"]),
        (
            &["--dns-filter", "--dns-upstream", "dns.example"],
            &["--dns-upstream", "dns.example", "10.96.0.10:53"],
        ),
        (&["--excluded-namespaces", "a.b"], &["--excluded-namespaces", "a.b"]),
        (&["--log", "loud=very"], &["--log", "debug"]),
        (&["--mesh-domain", "aether"], &["--mesh-domain", "\"aether\"", "one label"]),
        (&["--mesh-domain", "mesh.svc"], &["--mesh-domain", "mesh.svc", "svc"]),
        (&["--mesh-domain", "a.cluster.local"], &["--mesh-domain", "a.cluster.local", "inside"]),
        (&["--mesh-domain", "a_b.c"], &["--mesh-domain", "a_b.c", "no DNS name"]),
        (
            &["--xds-address", "none", "--xds-socket", "none"],
            &["--xds-address", "--xds-socket", "no proxy could connect"],
        ),
        (&["--no-such-option"], &["--no-such-option"]),
    ] {
        let (_folder, socket) = socket()?;
        let mut args = vec!["serve", "--manifests", manifests];
        args.extend(wrong);
        for (option, value) in [("--xds-address", "none"), ("--xds-socket", socket.as_str())] {
            if !wrong.contains(&option) {
                args.extend([option, value]);
            }
        }
        let (code, said) = refused(&args, None)?;
        assert_eq!(code, 2, "{args:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{args:?}: {word} in {said}");
        }
        nothing_started(&socket);
    }
    // No folder, and no API server either.
    let nowhere = ["--xds-address", "127.0.0.1:0", "--kubeconfig", "/nowhere/config"];
    let (code, said) = refused(&[&["serve"], &nowhere[..]].concat(), None)?;
    assert!(code == 1 && said.contains("/nowhere/config"), "{code} {said}");
    Ok(())
}

#[test]
fn options_are_variables_too_and_as_strict() -> Result<()> {
    let folder = places::folder()?;
    let args = ["serve", "--manifests", "/nowhere"];
    let mut spec = Spec::new(&places::program("aether")?, args, &folder.path().join("log"));
    spec.env.push(("AETHER_CAPTURE_MODE".to_owned(), "all".to_owned()));
    let mut process = Process::start(&spec)?;
    assert_eq!(process.wait(Duration::from_secs(10))?.code(), Some(2), "{}", process.log());
    assert!(process.log().contains("--capture-mode"), "{}", process.log());
    Ok(())
}
