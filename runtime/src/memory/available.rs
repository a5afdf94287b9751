//! How much memory this process may still take, as Linux tells.

use super::Size;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Memory that can still be had, and what keeps it from being more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Available {
    /// Bytes.
    pub bytes: u64,
    /// What leaves no more.
    pub by: Limit,
}

/// What limits memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// What the machine has free, or could free.
    Machine,
    /// The limit on addresses, `ulimit -v`.
    Addresses,
    /// The limit on data, `ulimit -d`.
    Data,
    /// The limit of a control group, as that of a container or a batch job.
    Group,
}

impl fmt::Display for Available {
    /// The end of a sentence: "this machine has 3.0 GiB free".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = Size(self.bytes.into());
        match self.by {
            Limit::Machine => write!(f, "this machine has {size} free"),
            Limit::Addresses => write!(f, "the limit on memory (ulimit -v) leaves {size}"),
            Limit::Data => write!(f, "the limit on data (ulimit -d) leaves {size}"),
            Limit::Group => write!(f, "the container's or job's limit on memory leaves {size}"),
        }
    }
}

/// How much memory this process may still take: the least that any limit leaves. Nothing where the system does not tell, and
/// only the allocator knows.
pub fn available() -> Option<Available> {
    static GROUPS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    let groups = GROUPS.get_or_init(|| groups(Path::new("/")));
    let machine = machine(Path::new("/")).map(|bytes| Available { bytes, by: Limit::Machine });
    let groups = groups.iter().filter_map(|group| left_in(group)).map(|bytes| Available { bytes, by: Limit::Group });
    machine.into_iter().chain(own_limits()).chain(groups).min_by_key(|there| there.bytes)
}

/// Bytes that the limits of this process leave, if there are any.
pub fn allowed() -> Option<u64> {
    own_limits().into_iter().map(|there| there.bytes).min()
}

/// Bytes that the limit on addresses leaves, if there is one, whatever else leaves less.
pub fn addresses() -> Option<u64> {
    own_limits().into_iter().find(|there| there.by == Limit::Addresses).map(|there| there.bytes)
}

/// Bytes that Linux says could be used.
fn machine(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kib| kib.saturating_mul(1024))
}

/// What the limits of this process leave.
#[cfg(target_os = "linux")]
fn own_limits() -> Vec<Available> {
    let limit = |resource| {
        let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: the structure is there, and is written to or left as it is.
        unsafe { libc::getrlimit(resource, &mut limit) };
        (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
    };
    let limits = [(libc::RLIMIT_AS, Limit::Addresses, 0), (libc::RLIMIT_DATA, Limit::Data, 5)];
    let limits = limits.map(|(resource, by, place)| Some((limit(resource)?, by, place)));
    if limits.iter().all(Option::is_none) {
        return Vec::new();
    }
    // Pages of all addresses, and of data with stacks, are the first and the sixth number.
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    // SAFETY: it looks a constant up.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    let left = |(limit, by, place): (u64, Limit, usize)| {
        let used = pages.get(place).copied().unwrap_or(0).saturating_mul(page);
        Available { bytes: limit.saturating_sub(used), by }
    };
    limits.into_iter().flatten().map(left).collect()
}

/// Only Linux tells what is used.
#[cfg(not(target_os = "linux"))]
fn own_limits() -> Vec<Available> {
    Vec::new()
}

/// The folders of the control groups that this process is in and that may limit its memory, of either version, and of all
/// groups around them.
fn groups(root: &Path) -> Vec<PathBuf> {
    let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let (own, mounts) = (text("proc/self/cgroup"), text("proc/self/mountinfo"));
    let mut folders = Vec::new();
    for line in own.lines() {
        // "0::/path" in version 2, "4:memory:/path" in version 1.
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let is_second = controllers.is_empty();
        if !is_second && !controllers.split(',').any(|controller| controller == "memory") {
            continue;
        }
        let Some((inner, at)) = mounts.lines().find_map(|line| mounted(line, is_second)) else { continue };
        let at = root.join(at.trim_start_matches('/'));
        // In a container the path may be that outside, of which the mounted folder is a part.
        let within = path.strip_prefix(inner.trim_end_matches('/')).unwrap_or(path).trim_start_matches('/');
        let folder = at.join(within);
        let folder = if folder.is_dir() && !within.contains("..") { folder } else { at.clone() };
        folders.extend(folder.ancestors().take_while(|folder| folder.starts_with(&at)).map(Path::to_owned));
    }
    folders
}

/// Of a line of `mountinfo` that mounts control groups of a version, those of memory: which folder of the groups is mounted,
/// and where.
fn mounted(line: &str, is_second: bool) -> Option<(&str, &str)> {
    let (place, how) = line.split_once(" - ")?;
    let mut how = how.split(' ');
    let (kind, _, options) = (how.next()?, how.next()?, how.next().unwrap_or_default());
    let fits = match is_second {
        true => kind == "cgroup2",
        false => kind == "cgroup" && options.split(',').any(|option| option == "memory"),
    };
    let mut place = place.split(' ').skip(3);
    fits.then_some((place.next()?, place.next()?))
}

/// Bytes that the limit of a control group leaves. Pages of files that are kept for later count as used there, and are given
/// up before anything fails.
fn left_in(group: &Path) -> Option<u64> {
    let text = |name: &str| fs::read_to_string(group.join(name)).ok();
    let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
    let of_files = |names: [&str; 2]| {
        let all = text("memory.stat").unwrap_or_default();
        let lines = all.lines().filter_map(|line| line.split_once(' '));
        let some = lines.filter(|(name, _)| names.contains(name)).filter_map(|(_, bytes)| bytes.parse::<u64>().ok());
        some.fold(0, u64::saturating_add)
    };
    let (most, used, files) = match number("memory.max") {
        Some(most) => (most, number("memory.current")?, of_files(["inactive_file", "active_file"])),
        None => {
            let most = number("memory.limit_in_bytes")?;
            (most, number("memory.usage_in_bytes")?, of_files(["total_inactive_file", "total_active_file"]))
        }
    };
    Some(most.saturating_sub(used.saturating_sub(files)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root folder with these files.
    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    /// What the groups below a root leave, from the inside out.
    fn left(root: &Path) -> Vec<u64> {
        groups(root).iter().filter_map(|group| left_in(group)).collect()
    }

    #[test]
    fn this_machine_has_memory() {
        let there = available().unwrap();
        assert!(there.bytes > 1 << 20 && there.to_string().contains("iB"), "{there}");
        let root = root(&[("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:      7 kB\n")]);
        assert_eq!(machine(root.path()), Some(7 * 1024));
        assert_eq!(machine(&root.path().join("nowhere")), None);
    }

    /// The machine leaves less than this limit does, which is one all the same.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_limit_on_addresses_is_found_beside_a_tighter_one() {
        let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the structure is there, and is written to.
        assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut before) }, 0);
        let wide = libc::rlimit { rlim_cur: (1 << 46).min(before.rlim_max), ..before };
        // SAFETY: it reads the structure; what it limits is far more than tests take.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &wide) }, 0);
        let (found, tightest) = (addresses(), available());
        // SAFETY: it reads the structure.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &before) }, 0);
        assert!(found.is_some_and(|left| left > 0), "{found:?}, {tightest:?}");
    }

    #[test]
    fn groups_of_the_second_version_count_with_those_around() {
        let root = root(&[
            ("proc/self/cgroup", "0::/job/step\n"),
            ("proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"),
            ("sys/fs/cgroup/job/step/memory.max", "max\n"),
            ("sys/fs/cgroup/job/step/memory.current", "100\n"),
            ("sys/fs/cgroup/job/memory.max", "1000\n"),
            ("sys/fs/cgroup/job/memory.current", "700\n"),
            ("sys/fs/cgroup/job/memory.stat", "anon 350\ninactive_file 200\nactive_file 150\n"),
        ]);
        assert_eq!(left(root.path()), [650]);
    }

    #[test]
    fn groups_of_the_first_version_are_found_from_within_a_container() {
        let root = root(&[
            ("proc/self/cgroup", "5:devices:/docker/abc\n4:cpu,memory:/docker/abc\n"),
            (
                "proc/self/mountinfo",
                "31 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                 32 30 0:28 /docker/abc /sys/fs/cgroup/memory rw master:1 - cgroup cgroup rw,memory\n",
            ),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "500\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "600\n"),
            ("sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 150\n"),
        ]);
        assert_eq!(left(root.path()), [50]);
        // A path of the outside leads nowhere here: what is mounted counts.
        fs::write(root.path().join("proc/self/cgroup"), "4:memory:/elsewhere/abc\n").unwrap();
        assert_eq!(left(root.path()), [50]);
    }

    #[test]
    fn no_groups_are_no_limit() {
        assert!(left(root(&[]).path()).is_empty());
        let odd = root(&[("proc/self/cgroup", "x\n0::\n::\n"), ("proc/self/mountinfo", "a - b\n - \n")]);
        assert!(left(odd.path()).is_empty());
    }
}
