//! What is shown of the server while it runs: the pages of the admin server.

use std::sync::Arc;

use tokio::sync::watch;

use crate::admin::{NoPage, Pages};
use crate::status::{self, Nodes, Question, Unanswered};
use crate::xds::{Clients, Snapshot};

type Snapshots = watch::Receiver<Option<Arc<Snapshot>>>;

/// `/nodes` and `/snapshot`.
pub(super) fn pages(clients: Arc<Clients>, snapshots: Snapshots) -> Pages {
    let of_nodes = snapshots.clone();
    Pages::default()
        .with("/nodes", "/nodes", move |_| {
            let newest = of_nodes.borrow().clone();
            json(&Nodes::of(&clients, newest.as_ref()))
        })
        .with("/snapshot", "/snapshot[?type=CDS[&name=][&node=][&protocol=sotw]]", move |asked| {
            let newest = snapshots.borrow().clone();
            let page =
                Question::of(asked).and_then(|asked| status::snapshot(newest.as_ref(), &asked));
            page.map_err(|no| no_page(&no)).and_then(|page| json(&page))
        })
}

fn json(page: &impl serde::Serialize) -> Result<Vec<u8>, NoPage> {
    let mut text = serde_json::to_vec_pretty(page).map_err(|e| NoPage::Failed(e.to_string()))?;
    text.push(b'\n');
    Ok(text)
}

fn no_page(unanswered: &Unanswered) -> NoPage {
    let words = unanswered.to_string();
    match unanswered {
        Unanswered::Wrong(_) => NoPage::Wrong(words),
        Unanswered::Absent(_) => NoPage::Absent(words),
        Unanswered::NotYet => NoPage::NotYet(words),
        Unanswered::Failed(_) => NoPage::Failed(words),
    }
}
