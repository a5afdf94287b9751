//! `--share`: one layout for several stencils.

use crate::common::folder::Folder;

const DYCORE: &str = "
stencil narrow { in a; out b; b = a[i-1] + a[i+1] }
stencil wide { in a; out b; b = a[i-2] + a[i+2] + a[j-1] + a[j+1] }
stencil aside { in a; out b; b = a[i-3] }
";

/// The array of places in a built file.
fn places(folder: &Folder, name: &str) -> String {
    let built = std::fs::read_to_string(folder.path(&format!("{name}.cu"))).unwrap();
    let start = built.find(&format!("static const int {name}_places[")).unwrap();
    let values = built[start..].split_once('{').unwrap().1;
    values.split_once('}').unwrap().0.to_owned()
}

#[test]
fn built_kernels_agree_on_the_places() {
    let folder = Folder::new();
    std::fs::write(folder.path("dycore.stn"), DYCORE).unwrap();
    let storage = "--grid 40x9x4 --storage compressed --layout z-curve";
    for name in ["narrow", "wide", "aside"] {
        folder.done(&format!("build dycore.stn --stencil {name} --share dycore.stn --share heat27 {storage} -o ."));
    }
    let shared = [places(&folder, "narrow"), places(&folder, "wide"), places(&folder, "aside")];
    assert!(shared[0] == shared[1] && shared[1] == shared[2]);
    // The order of files makes no difference.
    folder.done(&format!("build heat27 --share dycore.stn {storage} -o ."));
    assert_eq!(places(&folder, "heat27"), shared[0]);
    let built = std::fs::read_to_string(folder.path("aside.cu")).unwrap();
    assert!(built.contains("static __device__ const int aside_cells["), "{built}");
    assert!(built.contains("--share dycore.stn --share heat27"), "{built}");
    for name in ["narrow", "wide"] {
        folder.done(&format!("build dycore.stn --stencil {name} {storage} -o ."));
    }
    assert_ne!(places(&folder, "narrow"), places(&folder, "wide"));
}

#[test]
fn what_cannot_be_shared_is_said() {
    let folder = Folder::new();
    for (call, part) in [
        ("build laplap --share hdiff", "depends on the grid"),
        ("build laplap --share hdiff --grid 9x9x4 --fields aos", "cannot be shared"),
        ("build laplap --share hdif --grid 9x9x4", "did you mean `hdiff`?"),
        ("build laplap --share broken.stn --grid 9x9x4", "`phj`"),
    ] {
        let said = folder.refused(call);
        assert!(said.contains(part), "{said}");
    }
    // One that the grid is too small for takes no part.
    folder.done("run laplap --share acoustic8 --grid 6x6x9 --storage compressed --device cpu");
}
