// SPDX-License-Identifier: BSD-3-Clause
//! The encrypted session of two gateways for one job: Noise NNpsk0, with the job's key as pre-shared key.
//!
//! Each message is its length (u16, little endian) and that many bytes. The first one says in clear which
//! key, job (as a hash) and clusters it is about; the handshake covers all of that. The answer is either the
//! other half of the handshake (behind a zero byte), or a one and a text that says why not. That text is not
//! authenticated: it is shown to people, and decides nothing.

use crate::wire::{self, Head};
use snow::{Builder, HandshakeState, StatelessTransportState};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
const MAGIC: &[u8; 8] = b"CRGATE\0\x01";
/// Bytes of a handshake message: a public key and a tag.
const SHAKE: usize = 48;
/// Bytes of the first message at most.
const FIRST: usize = 8 + 32 + 3 * 65 + SHAKE;
/// Bytes of a sealed message at most, and of what is in it.
const SEALED: usize = 65_535;
const PLAIN: usize = SEALED - 16;

/// What a session is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// SHA-256 of the job's name.
    pub hash: [u8; 32],
    /// The name of the key.
    pub key: String,
    /// The cluster of the gateway that connects.
    pub from: String,
    /// The cluster of the gateway that is called.
    pub to: String,
}

impl About {
    /// The first message, without the handshake's part.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = [&MAGIC[..], &self.hash].concat();
        for name in [&self.key, &self.from, &self.to] {
            bytes.push(name.len().min(64) as u8);
            bytes.extend(&name.as_bytes()[..name.len().min(64)]);
        }
        bytes
    }

    /// Reads it back; also returns the bytes behind it.
    pub fn decode(mut bytes: &[u8]) -> Option<(About, &[u8])> {
        (bytes.split_off(..8)? == MAGIC).then_some(())?;
        let hash = bytes.split_off(..32)?.try_into().ok()?;
        let mut name = || {
            let length = usize::from(*bytes.split_off_first()?);
            String::from_utf8(bytes.split_off(..length)?.to_vec()).ok().filter(|name| name.len() <= 64)
        };
        let about = About { hash, key: name()?, from: name()?, to: name()? };
        Some((about, bytes))
    }
}

fn builder<'a>(secret: &'a [u8; 32], prologue: &'a [u8]) -> Result<Builder<'a>, snow::Error> {
    Builder::new(PATTERN.parse()?).psk(0, secret)?.prologue(prologue)
}

fn io_error(error: snow::Error) -> io::Error {
    io::Error::other(error.to_string())
}

async fn write(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_le_bytes()[..], bytes].concat()).await
}

async fn read(stream: &mut (impl AsyncRead + Unpin), most: usize) -> io::Result<Vec<u8>> {
    let length = usize::from(stream.read_u16_le().await?);
    if length > most {
        return Err(io::Error::other("a message that is too long"));
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

fn transport(state: HandshakeState) -> io::Result<Arc<StatelessTransportState>> {
    state.into_stateless_transport_mode().map(Arc::new).map_err(io_error)
}

/// The side that connects.
pub async fn initiate(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    about: &About,
    secret: &[u8; 32],
) -> io::Result<Arc<StatelessTransportState>> {
    let prologue = about.encode();
    let mut state = builder(secret, &prologue).and_then(Builder::build_initiator).map_err(io_error)?;
    let mut message = [0; SHAKE];
    let length = state.write_message(&[], &mut message).map_err(io_error)?;
    write(stream, &[&prologue, &message[..length]].concat()).await?;
    let answer = read(stream, 1024).await?;
    match answer.split_first() {
        Some((0, message)) => state.read_message(message, &mut [0; SHAKE]).map_err(io_error)?,
        Some((_, text)) => {
            let text = String::from_utf8_lossy(text).replace(char::is_control, " ");
            return Err(io::Error::other(text));
        }
        None => return Err(io::Error::other("an empty answer")),
    };
    transport(state)
}

/// The first message, as it came.
pub struct First(Vec<u8>);

/// Reads what another gateway sends first.
pub async fn first(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<(About, First)> {
    let bytes = read(stream, FIRST).await?;
    let wrong = || io::Error::other("no first message of a gateway");
    let (about, rest) = About::decode(&bytes).ok_or_else(wrong)?;
    if rest.len() == SHAKE { Ok((about, First(bytes))) } else { Err(wrong()) }
}

/// The side that is called goes on. The session is not to be trusted before something came over it: the first
/// message may be an old one that somebody repeats.
pub async fn respond(
    stream: &mut (impl AsyncWrite + Unpin),
    first: &First,
    secret: &[u8; 32],
) -> io::Result<Arc<StatelessTransportState>> {
    let (prologue, message) = first.0.split_at(first.0.len() - SHAKE);
    let mut state = builder(secret, prologue).and_then(Builder::build_responder).map_err(io_error)?;
    state.read_message(message, &mut [0; SHAKE]).map_err(|_| io::Error::other("the keys differ"))?;
    let mut answer = [0; 1 + SHAKE];
    let length = state.write_message(&[], &mut answer[1..]).map_err(io_error)?;
    write(stream, &answer[..=length]).await?;
    transport(state)
}

/// Says why not.
pub async fn refuse(stream: &mut (impl AsyncWrite + Unpin), text: &str) -> io::Result<()> {
    write(stream, &[&[1], &text.as_bytes()[..text.len().min(512)]].concat()).await
}

/// The sending half of a session.
pub struct Sealer {
    session: Arc<StatelessTransportState>,
    half: OwnedWriteHalf,
    nonce: u64,
    sealed: Vec<u8>,
}

impl Sealer {
    /// Over this half of the connection.
    pub fn new(session: Arc<StatelessTransportState>, half: OwnedWriteHalf) -> Sealer {
        Sealer { session, half, nonce: 0, sealed: Vec::new() }
    }

    /// Sends frames.
    pub async fn send(&mut self, frames: &[u8]) -> io::Result<()> {
        self.sealed.clear();
        for part in frames.chunks(PLAIN) {
            let start = self.sealed.len();
            self.sealed.resize(start + 2 + part.len() + 16, 0);
            let (length, place) = self.sealed[start..].split_at_mut(2);
            let written = self.session.write_message(self.nonce, part, place).map_err(io_error)?;
            length.copy_from_slice(&(written as u16).to_le_bytes());
            self.nonce += 1;
        }
        self.half.write_all(&self.sealed).await
    }
}

/// The receiving half of a session.
pub struct Opener {
    session: Arc<StatelessTransportState>,
    half: OwnedReadHalf,
    nonce: u64,
    sealed: Vec<u8>,
    plain: Vec<u8>,
    at: usize,
}

impl Opener {
    /// Over this half of the connection.
    pub fn new(session: Arc<StatelessTransportState>, half: OwnedReadHalf) -> Opener {
        Opener { session, half, nonce: 0, sealed: vec![0; SEALED], plain: Vec::new(), at: 0 }
    }

    /// The next frame: its header, and where its payload is, until the next call.
    pub async fn frame(&mut self) -> io::Result<(Head, Range<usize>)> {
        loop {
            let found = wire::parse(&self.plain[self.at..]).map_err(|fault| io::Error::other(fault.to_string()))?;
            if let Some((head, payload)) = found {
                let start = self.at + wire::HEAD;
                self.at = start + payload.len();
                return Ok((head, start..self.at));
            }
            self.plain.drain(..self.at);
            self.at = 0;
            self.fill().await?;
        }
    }

    /// The payload of the last frame.
    pub fn payload(&self, place: Range<usize>) -> &[u8] {
        &self.plain[place]
    }

    async fn fill(&mut self) -> io::Result<()> {
        let length = usize::from(self.half.read_u16_le().await?);
        self.half.read_exact(&mut self.sealed[..length]).await?;
        let end = self.plain.len();
        self.plain.resize(end + length, 0);
        let read = self.session.read_message(self.nonce, &self.sealed[..length], &mut self.plain[end..]);
        self.plain.truncate(end + read.map_err(|_| io::Error::other("a message that does not decrypt"))?);
        self.nonce += 1;
        Ok(())
    }
}
