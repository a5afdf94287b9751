//! What lanes add together: the text of [`Statement::AtomicAdd`] of several numbers.
//!
//! [`Statement::AtomicAdd`]: crate::kernel::Statement::AtomicAdd

/// A function that adds a thread's two or four numbers at an index, or nowhere if that is -1. Its lanes turn them round: lane n
/// has then number n of each.
pub fn together(lanes: usize, c_type: &str) -> String {
    let numbers: Vec<String> = (0..lanes).map(|n| format!("v{n}")).collect();
    let parameters: Vec<String> = numbers.iter().map(|name| format!("{c_type} {name}")).collect();
    let mut text = format!(
        "static __device__ __forceinline__ void add_{lanes}({c_type}* const to, const int at, {})\n{{\n",
        parameters.join(", ")
    );
    let mut line = |own: &str| text.push_str(&format!("    {own}\n"));
    line(&format!("const int lane = threadIdx.x % {lanes}, first = threadIdx.x % 32 - lane;"));
    // Numbers a distance apart change places with those of the lane as far away: rows become columns.
    for by in (0..lanes.ilog2()).map(|bit| 1 << bit) {
        for low in (0..lanes).filter(|low| low & by == 0) {
            let (low, high) = (&numbers[low], &numbers[low + by]);
            line(&format!(
                "{{ const bool is_high = lane & {by}; const {c_type} got = __shfl_xor_sync(0xffffffffu, is_high ? {low} : {high}, {by}); if (is_high) {low} = got; else {high} = got; }}"
            ));
        }
    }
    for n in 0..lanes {
        line(&format!("const int at_{n} = __shfl_sync(0xffffffffu, at, first + {n});"));
    }
    for n in 1..lanes {
        let before = n - 1;
        line(&format!(
            "if (at_{before} == at_{n}) v{n} = v{before} + v{n}; else if (at_{before} >= 0) atomicAdd(to + at_{before} + lane, v{before});"
        ));
    }
    line(&format!("if (at_{0} >= 0) atomicAdd(to + at_{0} + lane, v{0});", lanes - 1));
    text.push_str("}\n");
    text
}
