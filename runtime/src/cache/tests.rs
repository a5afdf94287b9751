use super::*;
use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};

fn compiled() -> Compiled {
    let kernel = Resources { kernel: "k".to_owned(), registers: 40, ..Resources::default() };
    Compiled { image: (0..=255).collect(), resources: vec![kernel], log: "fine".to_owned() }
}

fn a_key(text: &str) -> blake3::Hash {
    key([text.as_bytes()].into_iter())
}

#[test]
fn whatever_a_kernel_depends_on_is_in_its_key() {
    let keys = [
        nvrtc_key("text", "sm_90", Kind::Cubin, b"13.0"),
        nvrtc_key("texts", "sm_90", Kind::Cubin, b"13.0"),
        nvrtc_key("text", "sm_80", Kind::Cubin, b"13.0"),
        nvrtc_key("text", "sm_90", Kind::Ptx, b"13.0"),
        nvrtc_key("text", "sm_90", Kind::Cubin, b"13.1"),
    ];
    let different: std::collections::HashSet<blake3::Hash> = keys.into_iter().map(Result::unwrap).collect();
    assert_eq!(different.len(), 5);
}

#[test]
fn a_second_time_is_read() {
    let root = tempfile::tempdir().unwrap();
    let first = through(Some(root.path()), &a_key("a"), || Ok(compiled())).unwrap();
    let second = through(Some(root.path()), &a_key("a"), || Err(Error::check("built twice"))).unwrap();
    assert_eq!((first.cached, second.cached), (false, true));
    assert_eq!(second.compiled, compiled());
    assert!(through(Some(root.path()), &a_key("b"), || Err(Error::check("another"))).is_err());
}

#[test]
fn damaged_entries_are_replaced() {
    let root = tempfile::tempdir().unwrap();
    let (root, key) = (root.path(), a_key("a"));
    let path = entry_path(root, &key);
    store(&path, &key, &compiled()).unwrap();
    let whole = fs::read(&path).unwrap();
    let mut damaged: Vec<Vec<u8>> = (0..whole.len()).step_by(7).map(|length| whole[..length].to_vec()).collect();
    damaged.push([whole.as_slice(), b"more"].concat());
    damaged.extend((0..whole.len()).map(|at| {
        let mut altered = whole.clone();
        altered[at] ^= 1;
        altered
    }));
    for bytes in damaged {
        fs::write(&path, &bytes).unwrap();
        let again = through(Some(root), &key, || Ok(compiled())).unwrap();
        assert!(!again.cached, "{} bytes", bytes.len());
        assert_eq!(fs::read(&path).unwrap(), whole);
    }
}

#[test]
fn an_entry_under_another_name_is_not_taken() {
    let root = tempfile::tempdir().unwrap();
    let (one, other) = (a_key("a"), a_key("b"));
    let path = entry_path(root.path(), &other);
    store(&path, &one, &compiled()).unwrap();
    assert_eq!(load(&path, &other), None);
    assert_eq!(load(&path, &one), Some(compiled()));
}

#[test]
fn many_threads_share_a_cache() {
    let root = tempfile::tempdir().unwrap();
    let built = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for round in 0..50 {
                    let key = a_key(&format!("{}", round % 5));
                    let build = || {
                        built.fetch_add(1, Ordering::Relaxed);
                        Ok(compiled())
                    };
                    assert_eq!(through(Some(root.path()), &key, build).unwrap().compiled, compiled());
                }
            });
        }
    });
    assert_eq!(built.load(Ordering::Relaxed), 5, "what several threads want at once is built once");
}

#[test]
fn a_folder_that_cannot_be_written_is_no_error() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, "in the way").unwrap();
    for root in [None, Some(file.as_path()), Some(Path::new("/proc/nowhere"))] {
        for _ in 0..2 {
            assert!(!through(root, &a_key("a"), || Ok(compiled())).unwrap().cached);
        }
    }
}

#[test]
fn a_folder_in_the_place_of_an_entry_is_no_error() {
    let root = tempfile::tempdir().unwrap();
    let key = a_key("a");
    fs::create_dir_all(entry_path(root.path(), &key).join("deeper")).unwrap();
    assert!(!through(Some(root.path()), &key, || Ok(compiled())).unwrap().cached);
}

#[test]
fn the_oldest_entries_go_first() {
    let folder = tempfile::tempdir().unwrap();
    let now = SystemTime::now();
    for age in 0..6u64 {
        let path = folder.path().join(age.to_string());
        fs::write(&path, [0; 100]).unwrap();
        File::open(&path).unwrap().set_modified(now - Duration::from_secs(age * 60)).unwrap();
    }
    let names = || {
        let mut names: Vec<_> = folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    prune(folder.path(), 350);
    assert_eq!(names(), ["0", "1", "2"]);
    prune(folder.path(), 1);
    assert_eq!(names(), ["0"]);
}

#[test]
fn what_comes_from_the_future_goes_first() {
    let folder = tempfile::tempdir().unwrap();
    let now = SystemTime::now();
    let hour = Duration::from_secs(3600);
    for (name, modified) in [("new.bin", now), ("old.bin", now - 48 * hour), ("future.bin", now + 48 * hour)] {
        let path = folder.path().join(name);
        fs::write(&path, [0; 100]).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    }
    prune(folder.path(), 250);
    let names: std::collections::BTreeSet<String> =
        folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names, ["new.bin", "old.bin"].map(str::to_owned).into());
}

#[test]
fn what_others_could_have_written_is_not_read() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let allow = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("home/kernels");
    let key = a_key("a");
    let opened = open(&folder).unwrap();
    let path = entry_path(&opened, &key);
    let is_cached = || through(open(&folder).as_deref(), &key, || Ok(compiled())).unwrap().cached;
    assert!(!is_cached() && is_cached());
    // Made for this user alone, whatever the umask.
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap()), mode(&opened)), (0o600, 0o700, 0o700));
    assert_eq!(mode(&root.path().join("home")), 0o700);
    // Each of them writable by others: what is there is not taken.
    for (part, usual) in [(opened.parent().unwrap(), 0o700), (opened.as_path(), 0o700), (path.parent().unwrap(), 0o700)]
    {
        for open in [0o720, 0o702, 0o1777] {
            // Nobody else renames what stands in a sticky folder above.
            let is_taken = open == 0o1777 && part == opened.parent().unwrap();
            allow(part, open);
            assert_eq!(is_cached(), is_taken, "{} {open:o}", part.display());
            allow(part, usual);
        }
    }
    let told = trust::ever_refused();
    let is_told = |told: &String| told.contains(NOT_USED) && told.contains(&opened.display().to_string());
    assert!(told.iter().any(is_told), "{told:?}");
    assert!(is_cached());
    // An entry is compiled again, and then is this user's alone.
    allow(&path, 0o666);
    assert!(!is_cached() && is_cached());
    assert_eq!(mode(&path), 0o600);
    // One that is not a file is neither read nor followed.
    let other = root.path().join("other");
    fs::rename(&path, &other).unwrap();
    std::os::unix::fs::symlink(&other, &path).unwrap();
    assert!(!is_cached() && is_cached() && !path.is_symlink());
}

/// What `work` does in a process of its own: this test again, told by a variable.
const CHILD: &str = "STENCILC_TEST_CACHE";
const PARENT: &str = "STENCILC_TEST_CACHE_PARENT";

/// An entry of some size that only its number decides, so that anybody can tell whether it is right.
fn numbered(number: u64) -> Compiled {
    let image = (0..20_000 + number * 999).map(|at| (at.wrapping_mul(number + 7) >> 3) as u8).collect();
    Compiled { image, log: number.to_string(), ..compiled() }
}

#[test]
fn processes_that_are_killed_leave_nothing_wrong() {
    const ENTRIES: u64 = 24;
    if let Some(root) = std::env::var_os(CHILD) {
        // Until somebody ends it: reads, checks and writes, and now and then damages or removes an entry. Should that be
        // gone, it ends by itself.
        let root = PathBuf::from(root);
        let parent = std::env::var(PARENT).unwrap();
        let mut draw = u64::from(std::process::id()) | 1;
        while std::os::unix::process::parent_id().to_string() == parent {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = (draw >> 33) % ENTRIES;
            let key = a_key(&number.to_string());
            let path = entry_path(&root, &key);
            match (draw >> 20) % 16 {
                0 => drop(fs::remove_file(&path)),
                1 => drop(File::options().write(true).open(&path).and_then(|file| file.set_len(draw % 9_000))),
                2 => drop(fs::remove_dir_all(path.parent().unwrap())),
                _ => {}
            }
            let built = through(Some(&root), &key, || Ok(numbered(number))).unwrap();
            if built.compiled != numbered(number) {
                fs::write(root.join("wrong"), number.to_string()).unwrap();
            }
        }
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let spawn = || {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "cache::tests::processes_that_are_killed_leave_nothing_wrong", "--test-threads=1"])
            .env(CHILD, root.path())
            .env(PARENT, std::process::id().to_string())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut children: Vec<_> = (0..16).map(|_| spawn()).collect();
    // Somewhere within what they do: each is ended (`kill -9`) and replaced five times.
    for round in 0..80usize {
        std::thread::sleep(Duration::from_micros(1 + (round as u64 * 7919) % 20_000));
        let child = &mut children[round % 16];
        assert!(child.try_wait().unwrap().is_none(), "a process ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
        *child = spawn();
    }
    while subfolders(root.path()).next().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    for child in &mut children {
        assert!(child.try_wait().unwrap().is_none(), "a process ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(!root.path().join("wrong").exists(), "an entry was wrong: {:?}", fs::read(root.path().join("wrong")));
    // Whatever is left is whole or ignored.
    for number in 0..ENTRIES {
        let key = a_key(&number.to_string());
        for _ in 0..2 {
            let built = through(Some(root.path()), &key, || Ok(numbered(number))).unwrap();
            assert!(built.compiled == numbered(number), "entry {number}");
        }
        assert!(load(&entry_path(root.path(), &key), &key).is_some(), "entry {number} is not kept");
    }
    // What was left half written goes: nobody holds it any more.
    for folder in subfolders(root.path()) {
        prune(&folder, LIMIT / FOLDERS);
        let left = files(&folder);
        assert!(left.iter().all(|file| file.path.extension().is_some_and(|ending| ending == "bin")));
    }
}

#[test]
fn sizes_are_numbers_with_a_unit() {
    assert_eq!(["4G", "800M", "1M"].map(size), [Some(4 << 30), Some(800 << 20), Some(1 << 20)]);
    for text in ["", "G", "0G", "-1G", "4", "4T", "1.5G", "4 G", "99999999999999G", "4é"] {
        assert_eq!(size(text), None, "{text}");
    }
}

#[test]
fn parts_do_not_run_together() {
    let key_of = |parts: &[&str]| key(parts.iter().map(|part| part.as_bytes()));
    assert_ne!(key_of(&["ab", "c"]), key_of(&["a", "bc"]));
    assert_ne!(key_of(&["a"]), key_of(&["a", ""]));
}
