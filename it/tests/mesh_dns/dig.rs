//! The rules of the names, as dig sees them with all its flags.

use anyhow::{Context, Result, ensure};

use super::stage::Stage;
use it::resolver::Names;

/// One answer of dig, taken apart.
struct Dug {
    text: String,
}

impl Dug {
    fn status(&self) -> &str {
        let after = self.text.split("status: ").nth(1).unwrap_or_default();
        after.split(',').next().unwrap_or_default()
    }

    /// The flags of the header.
    fn has_flag(&self, flag: &str) -> bool {
        let flags = self.text.split("flags:").nth(1).unwrap_or_default();
        flags.split(';').next().unwrap_or_default().split_whitespace().any(|one| one == flag)
    }

    /// The lines of a section.
    fn section(&self, name: &str) -> Vec<&str> {
        let start = format!(";; {name} SECTION:\n");
        let after = self.text.split(&start).nth(1).unwrap_or_default();
        after.split("\n\n").next().unwrap_or_default().lines().collect()
    }
}

fn dig(stage: &Stage, words: &str) -> Result<Dug> {
    Ok(Dug { text: stage.dig(words).with_context(|| format!("dig {words}"))? })
}

/// Negative answers carry the SOA record of the mesh's domain, TTL 5 and minimum 5.
fn has_soa(dug: &Dug) -> bool {
    let authority = dug.section("AUTHORITY");
    let fields: Vec<_> = authority.iter().flat_map(|line| line.split_whitespace()).collect();
    authority.len() == 1
        && fields[..4] == ["aether.internal.", "5", "IN", "SOA"]
        && fields.last() == Some(&"5")
}

#[tokio::test(flavor = "multi_thread")]
async fn names_have_answers_nodata_or_do_not_exist() -> Result<()> {
    let stage = Stage::set(&[]).await?;
    for (words, data) in [
        ("cart.shop.aether.internal A", "10.96.0.7"),
        ("cart.shop.aether.internal AAAA", "fd00:10:96::7"),
        ("CART.aether.INTERNAL A", "10.96.0.7"),
        ("db.cart.aether.internal A", "10.96.0.8"),
    ] {
        for flags in [
            "",
            "+tcp",
            "+noedns",
            "+dnssec",
            "+cdflag",
            "+norec",
            "+adflag",
            "+bufsize=512",
            "+nocookie",
            "+ednsopt=65001:00",
            "+subnet=10.0.0.0/24",
            "+nsid",
            "+expire",
            "+padding=64",
            "+ignore",
            "+keepopen +tcp",
            "+zflag",
        ] {
            let dug = dig(&stage, &format!("{words} {flags}"))?;
            let answer = dug.section("ANSWER");
            ensure!(
                dug.status() == "NOERROR" && answer.len() == 1,
                "{words} {flags}: {}",
                dug.text
            );
            ensure!(answer[0].ends_with(data), "{words} {flags}: {}", dug.text);
            ensure!(
                dug.has_flag("aa") && dug.has_flag("ra") && !dug.has_flag("tc"),
                "{}",
                dug.text
            );
            let edns = dug.text.contains("EDNS: version: 0");
            ensure!(edns != flags.contains("+noedns"), "{words} {flags}: {}", dug.text);
        }
    }
    for words in [
        "cart.shop.aether.internal MX",
        "cart.shop.aether.internal TXT",
        "cart.shop.aether.internal HTTPS",
        "cart.shop.aether.internal SRV",
        "four.aether.internal AAAA",
        "six.aether.internal A",
        "aether.internal A",
        "aether.internal NS",
        "shop.aether.internal A",
        "shop.aether.internal ANY",
        "cart.shop.aether.internal TYPE65280",
    ] {
        let dug = dig(&stage, words)?;
        ensure!(dug.status() == "NOERROR" && dug.section("ANSWER").is_empty(), "{}", dug.text);
        ensure!(has_soa(&dug), "{}", dug.text);
    }
    for words in [
        "nobody.aether.internal A",
        "nobody.shop.aether.internal AAAA",
        "x.cart.shop.aether.internal A",
        "nobody.aether.internal ANY",
        "cart.nobody.aether.internal TXT +tcp",
    ] {
        let dug = dig(&stage, words)?;
        ensure!(dug.status() == "NXDOMAIN" && has_soa(&dug), "{}", dug.text);
    }
    ensure!(stage.cluster.queries() == 0, "a name of the mesh was asked upstream");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_questions_have_answers_too() -> Result<()> {
    let stage = Stage::set(&[]).await?;
    for (words, status) in [
        ("cart.shop.aether.internal ANY", "NOERROR"),
        ("-c CH cart.shop.aether.internal A", "REFUSED"),
        ("-c ANY cart.shop.aether.internal -t A", "REFUSED"),
        ("-c HS stranger.example A", "REFUSED"),
        ("aether.internal AXFR +noall +comments", ""),
        ("version.bind TXT CH", "NOERROR"),
        ("hostname.bind TXT CH", "REFUSED"),
        ("cart.shop.aether.internal A +edns=1 +noednsneg", "BADVERS"),
        ("cart.shop.aether.internal A +opcode=NOTIFY", "NOTIMP"),
        ("cart.shop.aether.internal A +opcode=UPDATE", "NOTIMP"),
        ("cart.shop.aether.internal A +opcode=15", "NOTIMP"),
        ("+header-only", "FORMERR"),
    ] {
        // dig calls a refused transfer a failure and says so in its own words.
        let dug = match dig(&stage, words) {
            Ok(dug) => dug,
            Err(error) => Dug { text: format!("{error:#}") },
        };
        if words.contains("AXFR") {
            ensure!(dug.text.contains("Transfer failed"), "{}", dug.text);
            continue;
        }
        ensure!(dug.status() == status, "{words}: {}", dug.text);
    }
    // The spelling of the client comes back, by which it can tell forged answers.
    let dug = dig(&stage, "cArT.sHoP.aEtHeR.iNtErNaL A +qr")?;
    ensure!(dug.section("ANSWER")[0].starts_with("cArT.sHoP.aEtHeR.iNtErNaL."), "{}", dug.text);
    let dug = dig(&stage, "wEb.sHoP.svc A")?;
    ensure!(dug.section("ANSWER")[0].starts_with("wEb.sHoP.svc."), "{}", dug.text);
    let dug = dig(&stage, "_selfcheck.aether.internal TXT")?;
    ensure!(dug.text.contains("generation=1"), "{}", dug.text);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_cut_and_whole_over_tcp() -> Result<()> {
    let stage = Stage::set(&[]).await?;
    for (flags, least, most) in [
        ("+noedns", 20, 31),
        ("+bufsize=512", 20, 30),
        ("+bufsize=1000", 50, 60),
        ("+bufsize=4096", 70, 75),
    ] {
        let dug = dig(&stage, &format!("many.example A +ignore {flags}"))?;
        let answers = dug.section("ANSWER").len();
        ensure!(dug.has_flag("tc") && (least..=most).contains(&answers), "{flags}: {}", dug.text);
        ensure!(dug.text.contains("EDNS") != flags.contains("noedns"), "{flags}: {}", dug.text);
    }
    for flags in ["+tcp", "+noedns", "+bufsize=4096"] {
        let dug = dig(&stage, &format!("many.example A {flags}"))?;
        ensure!(dug.section("ANSWER").len() == 100 && !dug.has_flag("tc"), "{flags}: {}", dug.text);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn before_a_first_table_mesh_names_fail_and_the_rest_is_forwarded() -> Result<()> {
    let mut stage = Stage::over(Names::new()?, &[]).await?;
    let status = |words: &str| dig(&stage, words).map(|dug| dug.status().to_owned());
    ensure!(status("cart.shop.aether.internal A")? == "SERVFAIL");
    ensure!(status("aether.internal A")? == "SERVFAIL");
    ensure!(status("stranger.example A")? == "NOERROR");
    ensure!(status("web.shop.svc A")? == "NOERROR");
    stage.names.put_text("{ not yet")?;
    ensure!(status("cart.shop.aether.internal A")? == "SERVFAIL");
    stage.names.write(&super::stage::RECORDS, &super::stage::SHORT)?;
    let found = || async {
        let got = stage.ask("cart.shop.aether.internal", false).await?;
        ensure!(got.addresses.len() == 1, "{got:?}");
        Ok(())
    };
    it::eventually("the table", super::stage::SOON, found).await?;
    // The last good table is kept.
    stage.names.put_text("{ broken")?;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    found().await?;
    ensure!(
        stage.resolver.log().contains("the table before it is kept"),
        "{}",
        stage.resolver.log()
    );
    Ok(())
}
