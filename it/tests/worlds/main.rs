//! Never refused: 300 worlds at random, each loaded by real Envoys over both protocols, while one server per capture
//! mode and DNS setting follows from one world to the next. What each Envoy then holds is what `render` prints.
//!
//! A world that fails is kept, and the message names the seeds that bring it back: `AETHER_IT_WORLDS=41,45 it/test -p it
//! --test worlds` runs these alone, in this order; `AETHER_IT_WORLDS=1000-1299` runs 300 others.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod generate;
mod holds;
mod parts;
mod strategies;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use it::aether::{Aether, Over};
use it::envoy::Envoy;
use it::loaded::{Loaded, agrees};
use it::net::{Net, Pod};
use it::world::World;

use generate::{CALLER, Generated, OTHER_CALLER};

/// How many worlds there are, over all settings.
const WORLDS: u64 = 300;
/// One world in so many is loaded by Envoys that start with it, too.
const FRESH: usize = 15;
/// How long an Envoy may take for one world.
const SOON: Duration = Duration::from_secs(30);

/// The settings, each with a quarter of the worlds. The third has the longest mesh domain that there may be.
const SETTINGS: [&[&str]; 4] = [
    &[],
    &["--dns-filter"],
    &["--capture-mode", "scoped", "--mesh-domain", LONGEST],
    &["--capture-mode", "scoped", "--dns-filter", "--dns-upstream", "10.96.0.10,[fd00::a]:5353"],
];

/// 125 characters: two labels of 63 fit in front of it, with their dots, into the 253 of a DNS name.
const LONGEST: &str = "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm.\
                       eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee";

#[tokio::test]
async fn redirect_all() {
    follow(0).await;
}

#[tokio::test]
async fn redirect_all_with_dns() {
    follow(1).await;
}

#[tokio::test]
async fn scoped_in_the_longest_domain() {
    follow(2).await;
}

#[tokio::test]
async fn scoped_with_dns() {
    follow(3).await;
}

/// The seeds of a setting: every fourth of those that are asked for.
fn seeds(setting: usize) -> Vec<u64> {
    let asked = std::env::var("AETHER_IT_WORLDS").unwrap_or_else(|_| format!("0-{}", WORLDS - 1));
    let ranges = asked.split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.trim().parse::<u64>().expect("AETHER_IT_WORLDS=1,7,20-29");
        number(first)..=number(last)
    });
    ranges.flatten().filter(|seed| seed % 4 == setting as u64).collect()
}

async fn follow(setting: usize) {
    let seeds = seeds(setting);
    let Some(first) = seeds.first() else { return };
    let mut rig = Rig::start(setting, *first).await.unwrap();
    for (n, seed) in seeds.iter().enumerate() {
        let world = Generated::of(*seed);
        if let Err(error) = rig.pass(&world, n % FRESH == 0).await {
            let kept = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("world-{seed}"));
            world.keep(&kept).unwrap();
            rig.keep(&kept).await.unwrap();
            let last = n.checked_sub(1).map_or(String::new(), |last| format!("{},", seeds[last]));
            panic!(
                "world {seed} with {:?}: {error:#}\nit is kept in {}; to see it again: AETHER_IT_WORLDS={last}{seed}",
                SETTINGS[setting],
                kept.display()
            );
        }
    }
    rig.end().unwrap();
}

/// A server, and an Envoy for each protocol, which follow from world to world.
struct Rig {
    setting: usize,
    aether: Aether,
    following: [(&'static str, Envoy, Pod); 2],
    // Dropped in this order: what lives in the node goes before it.
    spare: [Pod; 2],
    world: World,
    _net: Net,
}

impl Rig {
    async fn start(setting: usize, first: u64) -> Result<Self> {
        let (net, world) = (Net::new()?, World::new()?);
        Generated::of(first).put(&world)?;
        let mut aether = Aether::start(&net, world.path(), SETTINGS[setting])?;
        aether.serving(SOON).await?;
        let pod = |protocol| -> Result<_> {
            let pod = net.pod()?;
            let envoy = Envoy::start(&pod, &bootstrap(&aether, CALLER, protocol)?)?;
            Ok((protocol, envoy, pod))
        };
        let following = [pod("delta")?, pod("sotw")?];
        let spare = [net.pod()?, net.pod()?];
        Ok(Self { setting, aether, following, spare, world, _net: net })
    }

    /// Goes on to this world, and sees both Envoys there; new ones too where `fresh`.
    async fn pass(&mut self, world: &Generated, fresh: bool) -> Result<()> {
        world.put(&self.world)?;
        let render = |node| Loaded::rendered(self.world.path(), node, SETTINGS[self.setting]);
        let rendered = render(CALLER)?;
        for (protocol, envoy, _) in &mut self.following {
            let loaded = agrees(envoy, &rendered, SOON).await;
            loaded.with_context(|| format!("the Envoy that follows over {protocol}"))?;
            envoy.process().must_run()?;
        }
        if fresh {
            let rendered = render(OTHER_CALLER)?;
            for ((protocol, ..), pod) in self.following.iter().zip(&self.spare) {
                let words = || format!("an Envoy that starts, over {protocol}");
                let bootstrap = bootstrap(&self.aether, OTHER_CALLER, protocol)?;
                let mut envoy = Envoy::start(pod, &bootstrap)?;
                envoy.ready(SOON).await.with_context(words)?;
                agrees(&envoy, &rendered, SOON).await.with_context(words)?;
            }
        }
        self.aether.process().must_run()
    }

    /// Keeps what the processes say in this folder, to look at.
    async fn keep(&self, folder: &Path) -> Result<()> {
        std::fs::write(folder.join("aether.log"), self.aether.log())?;
        for (protocol, envoy, _) in &self.following {
            std::fs::write(folder.join(format!("envoy-{protocol}.log")), envoy.log())?;
            for (page, file) in
                [("/config_dump?include_eds", "config.json"), ("/stats", "stats.txt")]
            {
                let page = envoy.admin(page).await?;
                std::fs::write(folder.join(format!("envoy-{protocol}-{file}")), page)?;
            }
        }
        Ok(())
    }

    /// What the server itself had to say.
    fn end(&mut self) -> Result<()> {
        let log = self.aether.log();
        let bad = log.lines().find(|line| {
            ["ERROR", "panicked", "refused", "defect"].iter().any(|word| line.contains(word))
        });
        ensure!(bad.is_none(), "the server says: {}", bad.unwrap_or_default());
        Ok(())
    }
}

fn bootstrap(aether: &Aether, node: &str, protocol: &str) -> Result<String> {
    let over = if protocol == "delta" { Over::Socket } else { Over::Tcp };
    aether.bootstrap(node, over, &["--protocol", protocol])
}
