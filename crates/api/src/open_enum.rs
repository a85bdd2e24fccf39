//! Enumerations that can be read even where a newer peer knows more values.

/// Declares an enumeration of texts.
///
/// The schema allows the values that are listed. A value from a server with a newer schema is kept
/// in `Other`, so that one such object never keeps all others from being read. The first value is
/// what an absent field means.
macro_rules! open_enum {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident {
            $(#[$first_attribute:meta])*
            $first:ident = $first_text:literal,
            $($(#[$variant_attribute:meta])* $variant:ident = $text:literal,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(#[$first_attribute])*
            #[default]
            $first,
            $($(#[$variant_attribute])* $variant,)*
            /// A value that this version does not know.
            Other(String),
        }

        impl $name {
            /// The value as it is written.
            pub fn as_str(&self) -> &str {
                match self {
                    Self::$first => $first_text,
                    $(Self::$variant => $text,)*
                    Self::Other(text) => text,
                }
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                match text.as_str() {
                    $first_text => Self::$first,
                    $($text => Self::$variant,)*
                    _ => Self::Other(text),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <String as serde::Deserialize>::deserialize(deserializer).map(Self::from)
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string", "enum": [$first_text, $($text),*]})
            }
        }
    };
}
pub(crate) use open_enum;
