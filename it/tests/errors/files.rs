//! Files and folders that break while the server serves.

use std::path::Path;

use anyhow::Result;
use it::loaded::{Loaded, agrees};
use it::world::{Object, World};

use super::{Rig, SOON, pod, service};

/// Bytes that are no text, let alone a manifest.
const GARBAGE: &[u8] = b"\x00\xff\xfe]]}{:\t- \x80&*!%@`\"";

#[tokio::test]
async fn a_broken_file_costs_itself_alone() -> Result<()> {
    let mut rig = Rig::start().await?;
    let log = rig.aether.log().len();
    // The document in between is broken, those around it are not.
    let [good, slice] = service("cart", 2, 80);
    let text = format!("{}\n---\nkind: [Service\n---\n{}\n", good.value(), slice.value());
    rig.world.put_text("broken.yaml", &text)?;
    rig.says(log, &["WARN", "UnreadableFile", "broken.yaml#2", "line", "document 2 is no YAML"])
        .await?;
    let loaded = rig.follows().await?;
    assert!(loaded.get("clusters", "http:cart.shop.aether.internal").is_some());
    assert!(loaded.get("clusters", "http:web.shop.aether.internal").is_some());

    // An object that cannot be read, in a file whose other object can.
    let log = rig.aether.log().len();
    let wrong = Object::service("shop", "wrong", "10.96.7.9").with(&["spec", "ports"], "eighty");
    rig.world.put("wrong", &[wrong, service("more", 3, 81)[0].clone()])?;
    rig.says(
        log,
        &["UnreadableObject", "Service shop/wrong", "wrong.yaml#1", "spec.ports", "eighty"],
    )
    .await?;
    let loaded = rig.follows().await?;
    assert!(loaded.get("clusters", "http:more.shop.aether.internal").is_some());
    assert!(loaded.get("clusters", "http:wrong.shop.aether.internal").is_none());
    Ok(())
}

#[tokio::test]
async fn garbage_in_place_of_a_file_empties_nothing_and_heals() -> Result<()> {
    let mut rig = Rig::start().await?;
    let before = rig.loaded().await?;
    let updates = rig.updates().await?;
    for garbage in
        [GARBAGE, b"", b"kind: Service\nmetadata: {name: web", b"[1, 2", b"\xef\xbb\xbf{"]
    {
        let log = rig.aether.log().len();
        std::fs::write(rig.world.path().join("web.yaml"), garbage)?;
        let said = rig.says(log, &["web.yaml", "kept in their last good form"]).await?;
        assert!(said.contains("UnreadableFile") && said.contains("the 2 objects"), "{said}");
        // What `render` makes of it now lacks them: it has not seen their last good form.
        assert!(rig.rendered()?.len() < before.len());
    }
    // A change of another file shows that all of this was worked on by now. What is served is what a folder gives
    // where the file is as it was.
    let reference = World::new()?;
    reference.put("web", &service("web", 1, 80))?;
    reference.put("caller", &[pod("caller", 1)])?;
    for world in [&rig.world, &reference] {
        world.put("cart", &service("cart", 2, 80))?;
    }
    let rendered = Loaded::rendered(reference.path(), "pod/shop/caller", &[])?;
    agrees(&rig.envoy, &rendered, SOON).await?;
    // One new cluster, its endpoints, and its virtual host: nothing was sent on account of the garbage.
    let sent = rig.updates().await? - updates;
    assert!(sent <= 4, "{sent} updates");

    let log = rig.aether.log().len();
    rig.world.put("web", &service("web", 1, 8081))?;
    rig.says(log, &["resolved: UnreadableFile", "web.yaml"]).await?;
    rig.follows().await?;
    Ok(())
}

/// The folder is put back from where it is `away`: all is as it was, and followed again.
async fn comes_back(rig: &mut Rig, away: &Path, before: &Loaded) -> Result<()> {
    let log = rig.aether.log().len();
    std::fs::rename(away, rig.world.path())?;
    rig.says(log, &["resolved: UnreadableFile", "Folder"]).await?;
    assert_eq!(rig.loaded().await?, *before);
    rig.world.put("cart", &service("cart", 2, 80))?;
    rig.follows().await.map(drop)
}

#[tokio::test]
async fn a_folder_that_is_gone_empties_nothing_and_is_followed_when_it_is_back() -> Result<()> {
    let mut rig = Rig::start().await?;
    let before = rig.loaded().await?;
    let away = rig.world.path().with_extension("away");
    let log = rig.aether.log().len();
    std::fs::rename(rig.world.path(), &away)?;
    rig.says(log, &["WARN", "the folder of manifests cannot be read", "kept as they last were"])
        .await?;
    assert_eq!(rig.loaded().await?, before);
    // A file in its place is none either.
    let log = rig.aether.log().len();
    std::fs::write(rig.world.path(), "")?;
    rig.says(log, &["the folder of manifests cannot be read", "Not a directory"]).await?;
    assert_eq!(rig.loaded().await?, before);

    std::fs::remove_file(rig.world.path())?;
    comes_back(&mut rig, &away, &before).await
}

#[tokio::test]
async fn an_object_that_goes_from_bad_to_good_keeps_its_last_good_form_meanwhile() -> Result<()> {
    let mut rig = Rig::start().await?;
    let before = rig.loaded().await?;
    let [service, slice] = service("web", 1, 80);
    let log = rig.aether.log().len();
    rig.world.put("web", &[service.clone().with(&["spec", "ports"], "eighty"), slice.clone()])?;
    rig.says(log, &["UnreadableObject", "Service shop/web", "the object's last good form is kept"])
        .await?;
    assert_eq!(rig.loaded().await?, before);
    // A value that can be read and cannot be used quarantines it: that is what its author now says.
    let log = rig.aether.log().len();
    rig.world.put("web", &[service.annotation("aether.io/port", "0"), slice])?;
    rig.says(log, &["InvalidValue", "Service shop/web", "aether.io/port", "\"0\"", "1 to 65535"])
        .await?;
    let after = rig.follows().await?;
    assert!(after.get("clusters", "http:web.shop.aether.internal").is_none());
    Ok(())
}

#[tokio::test]
async fn an_empty_folder_in_place_of_the_old_one_empties_nothing() -> Result<()> {
    let mut rig = Rig::start().await?;
    let before = rig.loaded().await?;
    let away = rig.world.path().with_extension("unmounted");
    let log = rig.aether.log().len();
    // What an unmounted volume looks like: the path leads to another folder, with nothing in it.
    std::fs::rename(rig.world.path(), &away)?;
    std::fs::create_dir(rig.world.path())?;
    let said = rig.says(log, &["WARN", "another folder than before is there"]).await?;
    assert!(
        said.contains("kept as they last were") && said.contains("mount the volume again"),
        "{said}"
    );
    assert_eq!(rig.loaded().await?, before);
    std::fs::remove_dir(rig.world.path())?;
    comes_back(&mut rig, &away, &before).await
}

#[tokio::test]
async fn a_folder_that_is_emptied_by_hand_is_said_to_be_and_the_proxy_waits_with_what_it_has()
-> Result<()> {
    let mut rig = Rig::start().await?;
    let log = rig.aether.log().len();
    rig.world.remove("web")?;
    let loaded = rig.follows().await?;
    assert!(loaded.get("clusters", "http:web.shop.aether.internal").is_none());
    rig.world.remove("caller")?;
    rig.says(log, &["INFO", "the folder holds no object any more"]).await?;
    let waits =
        ["INFO", "pod/shop/caller", "the proxy's node is gone", "keeps what it has, and waits"];
    rig.says(log, &waits).await?;
    assert_eq!(rig.loaded().await?, loaded);
    rig.world.put("caller", &[pod("caller", 1)])?;
    rig.says(log, &["INFO", "pod/shop/caller", "the proxy waits no more"]).await?;
    rig.world.put("web", &service("web", 1, 80))?;
    rig.follows().await?;
    let told = rig.aether.log();
    for once in ["the folder holds no object any more", "the proxy's node is gone", "waits no more"]
    {
        assert_eq!(told.matches(once).count(), 1, "{once}: {told}");
    }
    Ok(())
}
