//! Time in the world, who leads in it, and what must hold at every moment.

use super::*;

impl World {
    /// Whether it was told nothing for as long as a certificate lives, or as what was given up is
    /// trusted: nobody can expect it to know what is trusted.
    pub fn in_the_dark(&self, index: usize) -> bool {
        let (life, overlap) =
            (self.settings.certificate.as_secs(), self.settings.overlap.as_secs());
        let given_up = self.given_up.is_some_and(|at| self.seconds - at < 2 * life);
        let limit = if given_up { 2 * overlap } else { life };
        self.seconds - self.replicas[index].told >= limit
    }

    /// Whether nobody could do anything for so much of the time since an authority was due to be
    /// replaced that it cannot have been.
    fn nobody_could(&self) -> bool {
        let third = self.settings.authority.as_secs() / 3;
        let since = self.seconds.saturating_sub(third);
        let spans = self.helpless.iter().map(|(from, to)| to.saturating_sub(since.max(*from)));
        spans.sum::<u64>() >= third / 2
    }

    /// Whether somebody brought back an authority when it was due to be replaced already, and it
    /// has ended before another could be seen.
    fn ended(&self, der: &Der) -> bool {
        let third = self.settings.authority.as_secs() / 3;
        let ends =
            self.authorities.iter().any(|known| known.der == *der && known.until <= self.wall(50));
        ends && self.brought_back.is_some_and(|at| self.seconds - at < third)
            && self.better_than(der).is_none()
    }

    /// Time passes: what is late arrives, who has nothing to do but to wait looks when it is time,
    /// and somebody is elected where nobody leads.
    pub fn pass(&mut self, seconds: u64, told: &dyn Fn() -> String) {
        let end = self.seconds + seconds;
        loop {
            self.arrive();
            self.elect();
            self.check(told);
            for index in 0..self.replicas.len() {
                if self.replicas[index].wakes <= self.seconds {
                    self.work(index);
                    self.check(told);
                }
            }
            if self.seconds >= end {
                return;
            }
            let wakes = self.replicas.iter().map(|replica| replica.wakes);
            let arrives = self.late.iter().map(|(at, ..)| *at);
            let next = wakes.chain(arrives).min().unwrap_or(end).clamp(self.seconds + 1, end);
            if self.replicas.iter().all(|replica| replica.cut_off) {
                self.helpless.push((self.seconds, next));
            }
            self.seconds = next;
        }
    }

    /// What was under way comes to the API server.
    fn arrive(&mut self) {
        let (due, late) =
            std::mem::take(&mut self.late).into_iter().partition(|(at, ..)| *at <= self.seconds);
        self.late = late;
        for (_, write, wall) in due {
            self.store(write, wall);
        }
    }

    /// A minute without anybody who can lead, and another one does.
    fn elect(&mut self) {
        let can = |index: usize| !self.replicas[index].cut_off;
        if self.leader.is_some_and(can) {
            self.leaderless = None;
            return;
        }
        let since = *self.leaderless.get_or_insert(self.seconds);
        if self.seconds - since >= 60
            && let Some(able) = (0..self.replicas.len()).find(|index| can(*index))
        {
            self.leader = Some(able);
            self.leaderless = None;
        }
    }

    /// Looks until there is nothing more to write.
    pub fn work(&mut self, index: usize) {
        for _ in 0..10 {
            if self.round(index, Fate::Stored).write.is_none() {
                return;
            }
        }
    }

    /// What must hold at every moment: what all API servers trusted once is not presented when some
    /// do not.
    pub fn check(&mut self, told: &dyn Fn() -> String) {
        for index in 0..self.replicas.len() {
            let replica = &self.replicas[index];
            let Some(served) = &replica.served else { continue };
            let wall = self.wall(0);
            let trusted = served.until > wall && self.all_trust(&served.issuer);
            let excused =
                self.in_the_dark(index) || self.nobody_could() || self.ended(&served.issuer);
            assert!(
                trusted || !replica.trusted || excused,
                "at {}: {index} presents {:?}, which is trusted no more\n{}",
                self.seconds,
                served,
                told()
            );
            self.replicas[index].trusted = trusted;
        }
    }
}
