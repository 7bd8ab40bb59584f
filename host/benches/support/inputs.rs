//! Users and probes, the same in every run.
//!
//! User number `n` has the id `splitmix64(n)`: scattered over all 64 bits, and no two
//! alike. The first of them are those who left, and nine times as many never did.

/// How many users there are for each who left.
const USERS_FOR_EACH_LEAVER: u64 = 10;

/// The mixing function of the generator `splitmix64`, which maps no two numbers to one.
pub fn mix(number: u64) -> u64 {
    let mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// The id of a user.
pub fn user(number: u64) -> u64 {
    mix(number)
}

/// The generator `splitmix64`.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0.wrapping_sub(0x9E37_79B9_7F4A_7C15))
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.draw() % limit
    }
}

/// Which users a check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Population {
    /// Those who left.
    Left,
    /// Those who never did.
    NeverLeft,
}

impl Population {
    pub const ALL: [Population; 2] = [Population::Left, Population::NeverLeft];

    pub fn name(self) -> &'static str {
        match self {
            Population::Left => "hits",
            Population::NeverLeft => "misses",
        }
    }

    /// Users of this population at random, where the first `left` users have left.
    pub fn probes(self, left: u64, count: u64, seed: u64) -> Vec<u64> {
        let mut random = Random::new(seed);
        (0..count)
            .map(|_| match self {
                Population::Left => user(random.below(left)),
                Population::NeverLeft => {
                    user(left + random.below(left * (USERS_FOR_EACH_LEAVER - 1)))
                }
            })
            .collect()
    }
}
