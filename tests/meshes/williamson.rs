//! The shallow-water core that comes along, on a flow that is to stay as it is: its errors shrink as triangles do, and nothing is lost.

use crate::common::folder::Folder;
use serde_json::Value;

/// What a day of the steady flow leaves on a grid of so many bisections: by how much the height has changed, and what was lost.
fn a_day(bisections: u32) -> [f64; 3] {
    let folder = Folder::new();
    folder.done(&format!("mesh make icosahedral --size R2B{bisections} --radius 6371220 -o earth.npz"));
    let told = folder.done("run williamson --mesh earth.npz --set steps=192 --device cpu --json");
    let told: Value = serde_json::from_str(&told).unwrap();
    ["change", "lost_mass", "lost_energy"].map(|name| told["numbers"][name].as_f64().unwrap())
}

#[test]
fn a_steady_flow_stays_as_the_grid_lets_it() {
    let [coarse, fine] = [1, 2].map(a_day);
    for [_, mass, energy] in [coarse, fine] {
        assert!(mass.abs() < 1e-13 && energy.abs() < 1e-3, "{mass} {energy}");
    }
    // Of second order: half the length, a fourth of the error.
    let ratio = coarse[0] / fine[0];
    assert!((3.3..4.7).contains(&ratio) && fine[0] < 1e-3, "{coarse:?} {fine:?}");
}
