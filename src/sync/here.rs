//! On which core the caller's thread runs, for the price of a load.
//!
//! The kernel keeps that number in the memory of each thread that is registered for restartable sequences
//! (rseq(2)). glibc registers all threads since 2.35 and says where that memory is, counted from the thread
//! pointer, in `__rseq_offset`. (Its `sched_getcpu` reads the same number; to call that costs a short
//! operation more than it gains by knowing, where what it takes is not in the caches.)

/// How to find the number of the core: small, since each team has one at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Here {
    /// Bytes from the thread pointer to the number; 0: nobody keeps it.
    at: i16,
}

/// A core, by its number plus one. 0: not known.
pub type Core = u16;

impl Here {
    /// Nothing is known.
    pub const NOWHERE: Here = Here { at: 0 };

    /// Asks the C library.
    pub fn find() -> Here {
        #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux", not(miri), not(loom)))]
        // SAFETY: symbols of the C library's of these types, if it has them.
        unsafe {
            /// Bytes from the beginning of what the kernel keeps to the number.
            const CPU_ID: isize = 4;
            let symbol = |name: &std::ffi::CStr| libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
            let (offset, size) = (symbol(c"__rseq_offset").cast::<isize>(), symbol(c"__rseq_size").cast::<u32>());
            // A size of 0 says that nothing is registered.
            if !offset.is_null() && !size.is_null() && *size as isize >= CPU_ID + 4 {
                return Here { at: i16::try_from(*offset + CPU_ID).unwrap_or(0) };
            }
        }
        Here::NOWHERE
    }

    /// The core that the caller's thread runs on, or has just run on.
    #[inline(always)]
    pub fn core(self) -> Core {
        if self.at == 0 {
            return 0;
        }
        // What is not registered, or could not be, has a negative number.
        self.number().and_then(|number| Core::try_from(number).ok()?.checked_add(1)).unwrap_or(0)
    }

    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux", not(miri), not(loom)))]
    #[inline(always)]
    fn number(self) -> Option<i32> {
        let at = isize::from(self.at);
        let number: i32;
        // SAFETY: the C library says that there is such a number; only the kernel writes it, when this thread
        // does not run.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            std::arch::asm!(
                "mov {number:e}, dword ptr fs:[{at}]",
                number = lateout(reg) number,
                at = in(reg) at,
                options(nostack, preserves_flags, readonly),
            );
            #[cfg(target_arch = "aarch64")]
            std::arch::asm!(
                "mrs {thread}, tpidr_el0",
                "ldr {number:w}, [{thread}, {at}]",
                thread = out(reg) _,
                number = lateout(reg) number,
                at = in(reg) at,
                options(nostack, preserves_flags, readonly),
            );
        }
        Some(number)
    }

    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux", not(miri), not(loom))))]
    #[inline(always)]
    fn number(self) -> Option<i32> {
        None
    }
}

#[cfg(all(test, not(any(miri, loom))))]
mod tests {
    use super::*;
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;

    /// The caller's.
    const THREAD: Pid = Pid::from_raw(0);

    /// Binds the caller's thread to one core.
    fn bind(core: usize) {
        let mut set = CpuSet::new();
        set.set(core).unwrap();
        sched_setaffinity(THREAD, &set).unwrap();
    }

    #[test]
    fn who_moves_is_somewhere_else() {
        let set = sched_getaffinity(THREAD).unwrap();
        let here = Here::find();
        // SAFETY: a symbol of the C library's of this type, if it has it.
        let kept = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()).cast::<u32>().as_ref() };
        assert!(here != Here::NOWHERE || kept.is_none_or(|&size| size == 0), "the kernel keeps it");
        let cores = (0..CpuSet::count()).filter(|&core| set.is_set(core).unwrap());
        for core in cores.collect::<Vec<_>>() {
            bind(core);
            let found = here.core();
            assert!(found == core as Core + 1 || here == Here::NOWHERE, "{found} on {core}");
        }
        assert_eq!(Here::NOWHERE.core(), 0);
        // Other tests may run on this thread.
        sched_setaffinity(THREAD, &set).unwrap();
    }
}
