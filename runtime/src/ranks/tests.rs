//! Ranks that tell each other something, and what becomes of it on the way.

use super::threads::{Threads, threads, together};
use super::*;
use std::sync::Mutex;

/// What happens to the bytes that a rank sends.
#[derive(Clone, Copy, PartialEq)]
enum Harm {
    None,
    /// They are cut short.
    Cut,
    /// More come than were sent.
    Longer,
    /// They come once more in the place of the next ones.
    Again,
}

/// A thread whose bytes are harmed.
struct Harmed {
    own: Threads,
    harm: Harm,
    before: Mutex<Option<Vec<u8>>>,
}

impl Transport for Harmed {
    fn rank(&self) -> usize {
        self.own.rank()
    }

    fn ranks(&self) -> usize {
        self.own.ranks()
    }

    fn on_host(&self) -> [usize; 2] {
        self.own.on_host()
    }

    fn swap(&self, sent: Vec<Parcel>, awaited: &[Awaited]) -> Result<Vec<Vec<u8>>> {
        let harmed = |own: &Parcel| {
            let before = self.before.lock().unwrap().replace(own.bytes.clone());
            let bytes = match (self.harm, before) {
                (Harm::Cut, _) => own.bytes[..own.bytes.len() - 1].to_vec(),
                (Harm::Longer, _) => [&*own.bytes, &[0]].concat(),
                (Harm::Again, Some(before)) => before,
                (Harm::None | Harm::Again, _) => own.bytes.clone(),
            };
            Parcel { to: own.to, tag: own.tag, bytes }
        };
        self.own.swap(sent.iter().map(harmed).collect(), awaited)
    }

    fn end_all(&self, _: u8) {}
}

/// Two ranks of which the first sends the second three numbers, one after the other; what the second gets.
fn sent(harm: Harm) -> Vec<Result<Vec<u8>>> {
    let mut both = threads(2).into_iter().map(|own| Ranks::new(Harmed { own, harm, before: Mutex::new(None) }));
    let [first, second] = [both.next().unwrap(), both.next().unwrap()];
    for number in 1..4 {
        first.swap(About::Agreement, vec![Parcel { to: 1, tag: 7, bytes: vec![number; 2] }], &[]).unwrap();
    }
    let one = || Ok(second.swap(About::Agreement, vec![], &[Awaited { from: 0, tag: 7, count: 2 }])?.remove(0));
    (0..3).map(|_| one()).collect()
}

#[test]
fn what_was_harmed_on_its_way_is_no_number() {
    let right: Vec<Vec<u8>> = sent(Harm::None).into_iter().collect::<Result<_>>().unwrap();
    assert_eq!(right, [[1, 1], [2, 2], [3, 3]]);
    for harm in [Harm::Cut, Harm::Longer] {
        assert!(sent(harm).iter().all(Result::is_err));
    }
    let again = sent(Harm::Again);
    assert_eq!(*again[0].as_ref().unwrap(), [1, 1], "the first one has none before it");
    let said = again[1].as_ref().unwrap_err();
    assert!(said.message.contains("rank 1 awaits 2 bytes of rank 0, and something else came"), "{said}");
}

#[test]
fn bytes_have_tags_whatever_their_order() {
    let got = together(2, |ranks| {
        let other = 1 - ranks.rank();
        let parcel = |tag: u32| Parcel { to: other, tag, bytes: vec![tag as u8, ranks.rank() as u8] };
        let awaited = |tag: u32| Awaited { from: other, tag, count: 2 };
        ranks.swap(About::Halos(2), vec![parcel(1), parcel(2)], &[awaited(2), awaited(1)])
    });
    assert_eq!(got.unwrap(), [[[2, 1], [1, 1]], [[2, 0], [1, 0]]]);
}

#[test]
fn all_are_told_what_each_has() {
    let told = together(4, |ranks| {
        let own = vec![ranks.rank() as u8; ranks.rank()];
        Ok((ranks.gather(About::Agreement, &own)?, ranks.first_says(ranks.is_first())?))
    });
    for (all, first) in told.unwrap() {
        assert_eq!(all, [vec![], vec![1], vec![2, 2], vec![3, 3, 3]]);
        assert!(first);
    }
    let alone = together(1, |ranks| Ok((ranks.gather(About::Agreement, &[5])?, ranks.first_says(true)?))).unwrap();
    assert_eq!(alone, [(vec![vec![5]], true)]);
}

/// Ranks that ask for different things are told so, though as many bytes come.
#[test]
fn what_is_about_something_else_is_no_answer() {
    let all = together(2, |ranks| ranks.gather(About::Variable(ranks.rank()), &[7; 4]).map(drop));
    let said = all.unwrap_err();
    assert!(said.message.contains("something else came"), "{said}");
}

#[test]
fn the_first_alone_can_be_told() {
    let told = together(3, |ranks| {
        let all = ranks.collect(About::Variable(1), &[ranks.rank() as u8])?;
        ranks.tell_first_alone();
        Ok((all, ranks.collect(About::Variable(1), &[ranks.rank() as u8])?))
    });
    let all = vec![vec![0], vec![1], vec![2]];
    let told = told.unwrap();
    assert_eq!(told[0], (Some(all.clone()), Some(all.clone())));
    assert_eq!(told[2], (Some(all), None));
}

#[test]
fn nobody_goes_on_where_one_cannot() {
    let mine = |what: &str| Error::call(format!("no {what}")).help("another");
    let said = |wrong: &(dyn Fn(usize) -> Option<Error> + Sync)| {
        let all = together(3, |ranks| Ok(ranks.agree(wrong(ranks.rank()).as_ref()).map_err(|error| error.to_string())));
        let all = all.unwrap();
        assert!(all.iter().all(|own| *own == all[0]), "{all:?}");
        all[0].clone()
    };
    assert_eq!(said(&|_| None), Ok(()));
    let all = said(&|_| Some(mine("file"))).unwrap_err();
    assert!(all.starts_with("no file") && all.contains("another"), "{all}");
    let one = said(&|rank| (rank == 2).then(|| mine("disk"))).unwrap_err();
    assert!(one.starts_with("on rank 2 of 3: no disk"), "{one}");
}

#[test]
fn what_differs_is_told() {
    let said = |own: &(dyn Fn(usize) -> [u8; 2] + Sync)| {
        let all = together(3, |ranks| {
            let [version, text] = own(ranks.rank()).map(|byte| [byte; 32]);
            let parts = [("another version".to_owned(), version), ("another text".to_owned(), text)];
            Ok(ranks.compare(&parts).map_err(|error| error.message))
        });
        all.unwrap().remove(1)
    };
    assert_eq!(said(&|_| [1, 2]), Ok(()));
    assert!(said(&|rank| [1, rank as u8]).unwrap_err().contains("rank 1 has another text than rank 0"));
    assert!(said(&|rank| [u8::from(rank == 2), rank as u8]).unwrap_err().contains("rank 1 has another text"));
    assert!(said(&|rank| [u8::from(rank == 2), 0]).unwrap_err().contains("rank 2 has another version"));
}

#[test]
fn each_rank_of_a_host_has_a_gpu() {
    let own = |first, count, place| of_gpus(first, count, [place, 3]);
    assert_eq!([0, 1, 2].map(|place| own(0, 4, place).unwrap()), [0, 1, 2].map(Device::Cuda));
    assert_eq!([0, 1, 2].map(|place| own(1, 4, place).unwrap()), [1, 2, 3].map(Device::Cuda));
    assert_eq!([0, 1, 2].map(|place| own(0, 1, place).unwrap()), [0; 3].map(Device::Cuda), "each sees its own");
    let said = own(2, 4, 2).unwrap_err().to_string();
    assert!(said.contains("3 processes of this host") && said.contains("start at most 2 there"), "{said}");
    assert!(own(5, 4, 0).unwrap_err().to_string().contains("cuda:0 to cuda:3"));
}

/// Whoever waits for a rank that is gone is told, and does not wait for ever.
#[test]
fn nobody_waits_for_who_has_ended() {
    let all = together(3, |ranks| match ranks.rank() {
        1 => Err(Error::input("the disk is full")),
        _ => ranks.gather(About::Agreement, &[0]).map(drop),
    });
    assert_eq!(all.unwrap_err().message, "the disk is full");
}
