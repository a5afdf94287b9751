//! Enums whose variants have names: each name stands beside its variant.

/// Declares enums with what each variant is called and, perhaps, one line about it.
macro_rules! named {
    ($(
        $(#[$attribute:meta])*
        pub enum $name:ident {
            $($(#[$doc:meta])* $variant:ident = $word:literal $(, $line:literal)?;)*
        }
    )*) => { $(
        $(#[$attribute])*
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// Each of them, in the order that lists show.
            pub const ALL: [$name; [$($word),*].len()] = [$($name::$variant),*];

            /// What texts and the command line call it.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }
        $crate::named::summaries!($name: $($variant $($line)?),*);
    )* };
}
pub(crate) use named;

/// What there is to say in one line about each variant, if there is anything.
macro_rules! summaries {
    ($name:ident: $($variant:ident),*) => {};
    ($name:ident: $($variant:ident $line:literal),*) => {
        impl $name {
            /// One line about it.
            pub const fn summary(self) -> &'static str {
                match self { $($name::$variant => $line,)* }
            }
        }
    };
}
pub(crate) use summaries;
