//! What may go wrong with an API server, and what comes of it.

use super::fake::Fault;
use super::*;

fn world(fake: &Fake) {
    fake.put("nodes", node("n1", "a"));
    fake.put("pods", pod("a", "10.0.0.1"));
    fake.put("pods", pod("b", "10.0.0.2"));
}

#[tokio::test]
async fn a_missing_permission_is_named_and_waited_for() {
    for (verb, resource, kind, pages_alone) in
        [("watch", "nodes", "Node", false), ("list", "endpointslices", "EndpointSlice", true)]
    {
        let fake = Fake::default();
        world(&fake);
        if pages_alone {
            fake.with(Fault::PagesAlone);
        }
        fake.forbid(verb, resource);
        let mut source = following(&fake);
        let named = format!("{verb} {resource}");
        let waits = |state: &State| matches!(state, State::Waiting(why) if why.contains(&named));
        let State::Waiting(why) = source.says(waits).await else { panic!() };
        assert!(
            why.contains("API group")
                && why.contains(&format!("no complete list yet of {resource}")),
            "{why}"
        );
        source.silence().await;
        let group = if resource == "nodes" { "" } else { "discovery.k8s.io" };
        let gauge = format!(
            "source_forbidden{{verb=\"{verb}\",group=\"{group}\",resource=\"{resource}\"}} 1"
        );
        assert!(source.metric(&gauge));
        fake.allow();
        assert_eq!(source.update().await.changes.len(), 3);
        source.says(|state| *state == State::Ready).await;
        assert!(!source.metric(&gauge));
        assert!(source.metric(&format!("source_lists_total{{kind=\"{kind}\"}} 1")));
    }
}

#[tokio::test]
async fn an_api_server_that_is_away_at_the_start_is_waited_for() {
    let fake = Fake::default();
    world(&fake);
    fake.with(Fault::Away);
    let mut source = following(&fake);
    let refused = |state: &State| matches!(state, State::Waiting(why) if why.contains("https://10.0.0.1 cannot be reached: Connection refused"));
    source.says(refused).await;
    source.silence().await;
    fake.without(Fault::Away);
    assert_eq!(source.update().await.changes.len(), 3);
    source.says(|state| *state == State::Ready).await;
}

#[tokio::test]
async fn while_it_is_away_what_is_known_stays_and_then_only_what_changed_is_told() {
    let fake = Fake::default();
    world(&fake);
    let mut source = following(&fake);
    source.update().await;
    fake.with(Fault::Away);
    fake.cut();
    let degraded =
        |state: &State| matches!(state, State::Degraded(why) if why.contains("known last"));
    source.says(degraded).await;
    source.silence().await;
    // While nobody looks, one changes and one goes; and the server has forgotten the past.
    fake.put("pods", pod("a", "10.0.0.7"));
    fake.delete("pods", "shop", "b");
    fake.without(Fault::Away);
    fake.with(Fault::Forgets);
    // Whichever watch comes first is told that it is too late; the pods' own are listed anew.
    let mut told = Vec::new();
    while told.len() < 2 {
        fake.cut();
        fake.with(Fault::Forgets);
        if let Ok(Some(update)) =
            tokio::time::timeout(Duration::from_millis(500), source.updates.recv()).await
        {
            told.extend(words(&update));
        }
    }
    assert_eq!(told, ["+Pod a", "-Pod b"]);
    source.says(|state| *state == State::Ready).await;
    source.silence().await;
}

#[tokio::test]
async fn watches_that_are_cut_go_on_from_where_they_were() {
    let fake = Fake::default();
    world(&fake);
    let mut source = following(&fake);
    source.update().await;
    source.says(|state| *state == State::Ready).await;
    for _ in 0..5 {
        fake.cut();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(source.part.state(), State::Ready, "no trouble, an ordinary event");
    }
    source.silence().await;
    fake.put("pods", pod("a", "10.0.0.9"));
    assert_eq!(words(&source.update().await), ["+Pod a"]);
    assert!(source.metric("source_lists_total{kind=\"Pod\"} 1"));
}

#[tokio::test]
async fn a_server_that_hangs_up_at_once_is_not_asked_without_end() {
    let fake = Fake::default();
    world(&fake);
    fake.with(Fault::HangsUp);
    let mut source = following(&fake);
    source.update().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let asked = fake.requests().iter().filter(|uri| uri.contains("/pods")).count();
    assert!((5..20).contains(&asked), "{asked} in two seconds");
}

#[tokio::test]
async fn a_permission_that_is_withdrawn_is_said_and_costs_nothing_that_is_known() {
    let fake = Fake::default();
    world(&fake);
    let mut source = following(&fake);
    source.update().await;
    fake.forbid("watch", "pods");
    fake.cut();
    let named = |state: &State| matches!(state, State::Degraded(why) if why.contains("watch pods"));
    source.says(named).await;
    source.silence().await;
    fake.allow();
    source.says(|state| *state == State::Ready).await;
    fake.put("pods", pod("a", "10.0.0.9"));
    assert_eq!(words(&source.update().await), ["+Pod a"]);
}

#[tokio::test]
async fn an_event_that_cannot_be_understood_is_not_lost() {
    let fake = Fake::default();
    world(&fake);
    // In the first list: half of it would look as if objects were gone.
    fake.with(Fault::Garbles);
    let mut source = following(&fake);
    assert_eq!(words(&source.update().await).len(), 3);
    // In a watch: the change is told by a new list.
    fake.garble("pods");
    fake.put("pods", pod("a", "10.0.0.9"));
    assert_eq!(words(&source.update().await), ["+Pod a"]);
    // And in a list that takes the place of another.
    fake.with(Fault::Garbles);
    fake.garble("pods");
    source.silence().await;
    fake.delete("pods", "shop", "b");
    assert_eq!(words(&source.update().await), ["-Pod b"]);
    source.says(|state| *state == State::Ready).await;
}

#[tokio::test]
async fn it_ends_with_its_receiver() {
    let fake = Fake::default();
    let mut source = following(&fake);
    source.update().await;
    source.updates.close();
    let task = &mut source.task;
    tokio::time::timeout(Duration::from_secs(2), task).await.expect("it ends").unwrap();
}
