// SPDX-License-Identifier: BSD-3-Clause
//! The socket to the gateway. Nothing here waits.

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, connect, setsockopt, socket, sockopt};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Why there is no connection (any more).
type Why<T> = Result<T, String>;

/// A connection, or the attempt at one.
pub struct Socket {
    stream: TcpStream,
    is_connected: bool,
    /// Addresses of the same host that are still to be tried.
    others: Vec<SocketAddr>,
}

impl Socket {
    /// Begins to connect to `HOST:PORT`.
    pub fn connect(address: &str) -> Why<Socket> {
        let found = address.to_socket_addrs().map_err(|error| format!("its host is not found: {error}"))?;
        let mut others: Vec<SocketAddr> = found.collect();
        others.reverse();
        let stream = next(&mut others, "its host has no address".to_owned())?;
        Ok(Socket { stream, is_connected: false, others })
    }

    /// Whether it is connected; tries the next address where one does not answer.
    pub fn is_connected(&mut self) -> Why<bool> {
        if self.is_connected {
            return Ok(true);
        }
        let ready = |stream: &TcpStream| {
            let mut wanted = [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)];
            !matches!(poll(&mut wanted, PollTimeout::ZERO), Ok(0))
        };
        if !ready(&self.stream) {
            return Ok(false);
        }
        match self.stream.take_error() {
            Ok(None) => {
                self.is_connected = true;
                Ok(true)
            }
            Ok(Some(error)) | Err(error) => {
                self.stream = next(&mut self.others, unreachable(&error))?;
                Ok(false)
            }
        }
    }

    /// Writes; how many bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Why<usize> {
        loop {
            match self.stream.write(bytes) {
                Ok(sent) => return Ok(sent),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(broken(&error)),
            }
        }
    }

    /// Reads; how many bytes have come.
    pub fn read(&mut self, to: &mut [u8]) -> Why<usize> {
        loop {
            match self.stream.read(to) {
                Ok(0) => return Err("it has closed the connection; its log may say why".to_owned()),
                Ok(got) => return Ok(got),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(broken(&error)),
            }
        }
    }

    /// Nothing more is sent. (Closed with something unread, it would take back what has not arrived.)
    pub fn finish(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Waits a little for something to happen.
    pub fn pause(&self) {
        let event = if self.is_connected { PollFlags::POLLIN } else { PollFlags::POLLOUT };
        let mut wanted = [PollFd::new(self.stream.as_fd(), event)];
        let _ = poll(&mut wanted, PollTimeout::from(10u8));
    }
}

fn unreachable(error: &std::io::Error) -> String {
    format!("it cannot be reached: {error}; does it run there, and does this node have a route to it?")
}

fn broken(error: &std::io::Error) -> String {
    format!("the connection with it is lost: {error}")
}

/// Begins to connect to the last of these addresses that can be tried.
fn next(addresses: &mut Vec<SocketAddr>, mut why: String) -> Why<TcpStream> {
    while let Some(address) = addresses.pop() {
        match begin(address) {
            Ok(stream) => return Ok(stream),
            Err(error) => why = unreachable(&error.into()),
        }
    }
    Err(why)
}

fn begin(address: SocketAddr) -> nix::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let made = socket(family, SockType::Stream, flags, None)?;
    // Not in place of a standard stream that the program has closed.
    let high = fcntl(&made, FcntlArg::F_DUPFD_CLOEXEC(3))?;
    // SAFETY: a new descriptor, and nobody else's.
    let made = unsafe { OwnedFd::from_raw_fd(high) };
    setsockopt(&made, sockopt::TcpNoDelay, &true)?;
    setsockopt(&made, sockopt::KeepAlive, &true)?;
    setsockopt(&made, sockopt::TcpKeepIdle, &2)?;
    setsockopt(&made, sockopt::TcpKeepInterval, &2)?;
    setsockopt(&made, sockopt::TcpKeepCount, &3)?;
    match connect(made.as_raw_fd(), &SockaddrStorage::from(address)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(TcpStream::from(made)),
        Err(error) => Err(error),
    }
}
