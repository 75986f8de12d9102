// SPDX-License-Identifier: BSD-3-Clause
//! The parameters as MCA holds them, and the texts that users gave them.

use crate::ffi::base::glue::{self, cr_given, cr_param, cr_param_word, mca_base_var_enum_t};
use crate::ffi::base::text::leak;
use crate::params::{Kind, TABLE, Value, from_environment, unknown_names};
use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

const PARAMS: usize = TABLE.len();

/// What MCA stores: a C string or null, or a number in the first bytes, by the parameter's kind.
static STORED: [AtomicPtr<c_char>; PARAMS] = [const { AtomicPtr::new(ptr::null_mut()) }; PARAMS];

/// MCA's numbers of the variables.
static INDICES: [AtomicI32; PARAMS] = [const { AtomicI32::new(-1) }; PARAMS];

/// The shim's enumerations of those that have words.
static ENUMERATIONS: [AtomicPtr<mca_base_var_enum_t>; PARAMS] = [const { AtomicPtr::new(ptr::null_mut()) }; PARAMS];

/// Where a setting is that is in no file: the launcher puts those of its command line into the environment.
const ENVIRONMENT: &str = "in the environment or by mpiexec --mca";

/// The table that the shim registers; made once, kept for ever.
pub fn table() -> &'static [cr_param] {
    struct Table(Vec<cr_param>);
    // SAFETY: the pointers are to leaked memory and to statics.
    unsafe impl Send for Table {}
    // SAFETY: as above.
    unsafe impl Sync for Table {}
    static MADE: OnceLock<Table> = OnceLock::new();
    &MADE.get_or_init(|| Table((0..PARAMS).map(row).collect())).0
}

fn row(number: usize) -> cr_param {
    let param = &TABLE[number];
    let words = words(param.kind);
    let kind = match param.kind {
        Kind::Text => glue::CR_PARAM_TEXT,
        Kind::Bool => glue::CR_PARAM_BOOL,
        Kind::Int { .. } | Kind::Choice(_) => glue::CR_PARAM_INT,
        Kind::Size { .. } => glue::CR_PARAM_SIZE,
    };
    cr_param {
        name: leak(param.name.to_owned()),
        help: leak(param.help.to_owned()),
        was: names(param.was),
        kind: kind as i32,
        level: i32::from(param.level),
        unset: i32::from(param.kind == Kind::Size { auto: true }),
        default_text: leak(param.default.to_owned()),
        default_number: param.kind.number(param.default).unwrap_or(0),
        words: words.as_ptr(),
        word_count: words.len(),
        storage: STORED[number].as_ptr().cast(),
        index: INDICES[number].as_ptr(),
        enumeration: ENUMERATIONS[number].as_ptr(),
    }
}

/// The values of a kind that have names.
fn words(kind: Kind) -> &'static [cr_param_word] {
    let word = |(number, word): (i32, &str)| cr_param_word { number, word: leak(word.to_owned()) };
    let words: Vec<cr_param_word> = match kind {
        Kind::Choice(words) => (0..).zip(words.iter().copied()).map(word).collect(),
        Kind::Int { auto: true } => vec![word((-1, "auto"))],
        _ => Vec::new(),
    };
    Box::leak(words.into_boxed_slice())
}

/// The names as C strings, null behind the last one; never freed.
fn names(list: &[&str]) -> *const *const c_char {
    let pointers: Vec<_> = list.iter().map(|name| leak((*name).to_owned())).chain([ptr::null()]).collect();
    Box::leak(pointers.into_boxed_slice()).as_ptr()
}

/// A parameter's text, and where it was set (empty: it has its default).
#[derive(Debug)]
pub struct Given {
    /// The default where nothing was given, or an empty text.
    pub text: String,
    place: String,
}

impl Given {
    /// For the parser.
    pub fn value(&self) -> Value<'_> {
        Value { text: &self.text, place: &self.place }
    }
}

/// What was given, in the order of the table. Looked up once, after the registration.
pub fn given() -> &'static [Given] {
    static GIVEN: OnceLock<Vec<Given>> = OnceLock::new();
    GIVEN.get_or_init(|| (0..PARAMS).map(look_up).collect())
}

/// # Safety
/// `text` is null or a NUL-terminated string.
unsafe fn copied(text: *const c_char) -> Option<String> {
    // SAFETY: by the caller's promise.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

fn look_up(number: usize) -> Given {
    let param = &TABLE[number];
    let mut raw = cr_given::default();
    // SAFETY: a row that was registered; fills in ours, with strings that MCA keeps for now.
    let (mut text, file) = unsafe {
        glue::cr_param_given(&table()[number], &mut raw);
        (copied(raw.text), copied(raw.file))
    };
    let place = match (&text, file) {
        (None, _) => String::new(),
        (_, Some(file)) => format!("in {file}, line {}", raw.line),
        (_, None) => ENVIRONMENT.to_owned(),
    };
    if param.kind == Kind::Text && text.is_some() {
        // As MCA understands it: with the home folder in place of ~.
        // SAFETY: MCA keeps a NUL-terminated string or null there once the parameter is registered.
        text = unsafe { copied(STORED[number].load(Ordering::Relaxed)) };
    }
    match text {
        Some(text) if !text.is_empty() => Given { text, place },
        _ => Given { text: param.default.to_owned(), place: String::new() },
    }
}

/// Stores what MCA could not read, or has read differently: sizes with a suffix, "auto", an empty text.
/// `ompi_info` and MPI_T show it.
pub fn store_numbers() {
    for (number, param) in TABLE.iter().enumerate() {
        let Some(value) = param.kind.number(&look_up(number).text) else { continue };
        let at: *mut c_void = STORED[number].as_ptr().cast();
        // SAFETY: eight aligned bytes that live for ever; MCA reads them as the type of the kind, and nobody
        // reads them now.
        unsafe {
            match param.kind {
                Kind::Text => {}
                Kind::Bool => *at.cast::<bool>() = value != 0,
                Kind::Int { .. } | Kind::Choice(_) => *at.cast::<i32>() = value as i32,
                Kind::Size { .. } => *at.cast::<usize>() = value as usize,
            }
        }
    }
}

/// Says of all names that are no parameter, in the environment and in the parameter files, that they are not.
pub fn unknown() -> Option<String> {
    unsafe extern "C" fn add(to: *mut c_void, name: *const c_char, file: *const c_char, line: i32) {
        // SAFETY: what the function below hands over, and strings of the shim's caller.
        let (list, name, file) = unsafe { (&mut *to.cast::<Vec<(String, String)>>(), copied(name), copied(file)) };
        if let (Some(name), Some(file)) = (name, file) {
            list.push((name, format!("in {file}, line {line}")));
        }
    }
    let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut settings: Vec<(String, String)> =
        variables.filter_map(|name| Some((from_environment(&name)?.to_owned(), ENVIRONMENT.to_owned()))).collect();
    // SAFETY: the shim calls `add` with the list, before it returns.
    unsafe { glue::cr_settings_in_files(Some(add), ptr::from_mut(&mut settings).cast()) };
    unknown_names(settings)
}
