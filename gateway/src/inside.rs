// SPDX-License-Identifier: BSD-3-Clause
//! Connections of processes of this cluster.

use crate::counters::{count, count_frame};
use crate::job::{Item, Job, Next, Process, Shared};
use crate::link::Link;
use crate::wire::{self, Head};
use coll_rust::relay::frame::{self, ALIVE, Frame, HEADER, Header, Kind};
use coll_rust::relay::hello::Hello;
use coll_rust::relay::proof::{self, Side};
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader, BufWriter};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tracing::{debug, warn};

/// How long the frames before WELCOME may take.
const SHAKE: Duration = Duration::from_secs(5);
/// How long a process may take to read the last frame.
const LAST: Duration = Duration::from_secs(1);
/// Bytes that are read or written at a time; longer payloads go past the buffer.
const BUFFER: usize = 16 * 1024;
/// Different receivers that are lost, of which one process is told.
const LOST: usize = 1024;

/// What a process said that it must not.
type Refusal = String;

/// Serves a connection from HELLO to its end.
pub async fn serve(shared: Arc<Shared>, mut stream: TcpStream, permit: OwnedSemaphorePermit) {
    let from = stream.peer_addr().map_or_else(|_| "?".to_owned(), |address| address.to_string());
    let shaken = timeout(SHAKE, shake(&shared, &mut stream)).await;
    drop(permit);
    let text = match shaken {
        Ok(Ok(Ok((hello, job, process)))) => return relay(shared, stream, hello, job, process).await,
        Ok(Ok(Err(text))) => text,
        Ok(Err(error)) => format!("no HELLO of a process: {error}"),
        Err(_) => "no HELLO of a process came in time".to_owned(),
    };
    count(&shared.counters.refused);
    if let Some(left_out) = shared.seldom.now() {
        warn!(from, text, left_out, "a process was refused");
    }
    let last = frame::plain(Kind::Refused, text.as_bytes());
    let _ = timeout(LAST, async {
        stream.write_all(&last).await?;
        stream.shutdown().await?;
        // A connection closed with bytes unread would be reset, and the text might not arrive.
        let mut rest = [0; 1024];
        while stream.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    })
    .await;
}

/// Reads a frame of one kind, which must be short.
async fn expect(stream: &mut TcpStream, kind: Kind) -> io::Result<Result<Vec<u8>, Refusal>> {
    let mut bytes = vec![0; HEADER];
    stream.read_exact(&mut bytes).await?;
    let header = match Header::decode(bytes.first_chunk().unwrap_or(&[0; HEADER])) {
        Ok(header) if header.kind == kind => header,
        Ok(header) => return Ok(Err(format!("{:?} came instead of {kind:?}", header.kind))),
        Err(fault) => return Ok(Err(format!("instead of {kind:?} came {fault}"))),
    };
    bytes.resize(header.frame(), 0);
    stream.read_exact(&mut bytes[HEADER..]).await?;
    Ok(Ok(bytes))
}

type Joined = (Hello, Arc<Job>, Arc<Process>);

/// HELLO, CHALLENGE, PROOF, WELCOME.
async fn shake(shared: &Arc<Shared>, stream: &mut TcpStream) -> io::Result<Result<Joined, Refusal>> {
    stream.set_nodelay(true)?;
    let first = match expect(stream, Kind::Hello).await? {
        Ok(bytes) => bytes,
        Err(text) => return Ok(Err(text)),
    };
    let hello = match Frame::parse(&first).map(|frame| frame.map(|frame| Hello::decode(&frame))) {
        Ok(Some(Ok(hello))) => hello,
        Ok(Some(Err(fault))) | Err(fault) => return Ok(Err(format!("this is {fault}"))),
        Ok(None) => return Ok(Err("this is a part of a HELLO".to_owned())),
    };
    let secret = match admit(shared, &hello) {
        Ok(secret) => secret,
        Err(text) => return Ok(Err(text)),
    };
    let mut nonce = [0; 32];
    getrandom::fill(&mut nonce).map_err(io::Error::other)?;
    let signed = proof::make(&secret, Side::Gateway, &first, &nonce);
    stream.write_all(&frame::plain(Kind::Challenge, &[nonce, signed].concat())).await?;
    let answer = match expect(stream, Kind::Proof).await? {
        Ok(bytes) => bytes,
        Err(text) => return Ok(Err(text)),
    };
    if !proof::holds(&answer[HEADER..], &secret, Side::Process, &first, &nonce) {
        let (job, key) = (&hello.job, &hello.key);
        return Ok(Err(format!("job {job}: the key '{key}' is not the one that the gateway has: compare the files")));
    }
    Ok(shared.join(&hello, &secret).map(|(job, process)| (hello, job, process)))
}

/// Whether this gateway serves such a job; its key.
fn admit(shared: &Shared, hello: &Hello) -> Result<[u8; 32], Refusal> {
    let (config, job) = (&shared.config, &hello.job);
    let own = hello.clusters.get(usize::from(hello.cluster));
    if own != Some(&config.cluster) {
        let own = own.map_or("", |name| name);
        return Err(format!(
            "job {job}: this is the gateway of cluster {}, not {own}: see coll_rust_gateway",
            config.cluster
        ));
    }
    let known = |name: &&String| **name != config.cluster && !config.peers.contains_key(*name);
    if let Some(other) = hello.clusters.iter().find(known) {
        return Err(format!("job {job}: the gateway of cluster {} does not know cluster {other}", config.cluster));
    }
    let secret = config.keys.get(&hello.key).copied();
    secret.ok_or_else(|| {
        format!(
            "job {job}: the gateway of cluster {} has no key called '{}': ask who runs it, or name another file in \
             coll_rust_gateway_key",
            config.cluster, hello.key
        )
    })
}

/// Relays until the process goes.
async fn relay(shared: Arc<Shared>, stream: TcpStream, hello: Hello, job: Arc<Job>, process: Arc<Process>) {
    count(&shared.counters.welcomed);
    let (job_name, number) = (hello.job.clone(), format!("{:#x}", process.number));
    debug!(job = job_name, process = number, "process has come");
    keep_alive(&stream);
    let (reader, writer) = stream.into_split();
    let from = Relay { shared: &shared, job: &job, process: &process };
    let reading = from.read(BufReader::with_capacity(BUFFER, reader));
    tokio::pin!(reading);
    let (clean, why) = tokio::select! {
        end = &mut reading => end,
        // It may have said BYE all the same, and left without reading what came last.
        error = from.write(&hello, BufWriter::with_capacity(BUFFER, writer)) => {
            timeout(LAST, reading).await.unwrap_or((false, error))
        }
    };
    debug!(job = job_name, process = number, clean, why, "process has gone");
    let what = if clean { "has left" } else { "has crashed, or its connection was cut" };
    let text = format!("process {number} of cluster {} {what}: {why}", shared.config.cluster);
    job.leave(&process, clean, &text);
}

/// A host that vanished is found out; a process that is stopped may stay.
fn keep_alive(stream: &TcpStream) {
    let often = socket2::TcpKeepalive::new();
    let often = often.with_time(Duration::from_secs(5)).with_interval(Duration::from_secs(2)).with_retries(3);
    let _ = socket2::SockRef::from(stream).set_tcp_keepalive(&often);
}

/// The connection of a process.
struct Relay<'a> {
    shared: &'a Arc<Shared>,
    job: &'a Arc<Job>,
    process: &'a Arc<Process>,
}

impl Relay<'_> {
    /// Reads until the connection ends: whether it ended well, and how.
    async fn read(&self, mut reader: BufReader<OwnedReadHalf>) -> (bool, String) {
        let mut told = HashSet::new();
        let mut bye = false;
        loop {
            let mut head = [0; HEADER];
            if let Err(error) = reader.read_exact(&mut head).await {
                return if bye { (true, "BYE".to_owned()) } else { (false, error.to_string()) };
            }
            let refused = match Header::decode(&head) {
                Ok(header) if bye => format!("{:?} came behind BYE", header.kind),
                Ok(header) if header.kind == Kind::Bye => {
                    bye = true;
                    continue;
                }
                Ok(header) if header.kind == Kind::Data => match self.data(&mut reader, header, &mut told).await {
                    Ok(Ok(())) => continue,
                    Ok(Err(text)) => text,
                    Err(error) => return (false, error.to_string()),
                },
                Ok(header) => format!("{:?} came where DATA or BYE belongs", header.kind),
                Err(fault) => fault.to_string(),
            };
            self.process.push_last(frame::plain(Kind::Refused, refused.as_bytes()));
            tokio::time::sleep(LAST).await;
            return (false, refused);
        }
    }

    /// A frame of DATA: waits until it is paid for, and only then reads its payload.
    async fn data(
        &self,
        reader: &mut BufReader<OwnedReadHalf>,
        header: Header,
        told: &mut HashSet<(u16, u64)>,
    ) -> io::Result<Result<(), Refusal>> {
        let link = match self.job.link(header.cluster) {
            Ok(link) => link,
            Err(text) => return Ok(Err(text)),
        };
        let length = header.length as usize;
        if let Err((peer, text)) = paid(&link, header.peer, length).await {
            let mut rest = reader.take(header.length.into());
            tokio::io::copy_buf(&mut rest, &mut tokio::io::sink()).await?;
            if told.insert((header.cluster, peer)) {
                let lost = Header { cluster: header.cluster, peer, ..Header::plain(Kind::Lost, 0) };
                self.process.push(Item { bytes: frame::encode(lost, text.as_bytes()), from: None });
            }
            let much = || format!("DATA for {LOST} processes that are not there");
            return Ok(if told.len() < LOST { Ok(()) } else { Err(much()) });
        }
        let head = Head {
            length: header.length,
            kind: wire::Kind::Data,
            source: self.process.number,
            destination: header.peer,
            key: header.key,
            number: header.number,
        };
        let promise = Promise { link: &link, destination: header.peer, length, kept: false };
        let mut bytes = Vec::with_capacity(wire::HEAD + length);
        bytes.extend(head.encode());
        bytes.resize(wire::HEAD + length, 0);
        reader.read_exact(&mut bytes[wire::HEAD..]).await?;
        promise.keep(bytes);
        count_frame(&self.shared.counters.sent, length);
        Ok(Ok(()))
    }

    /// Writes WELCOME and then what comes for the process; returns why it ended.
    async fn write(&self, hello: &Hello, mut writer: BufWriter<OwnedWriteHalf>) -> String {
        let welcome = frame::plain(Kind::Welcome, &[]);
        match async {
            writer.write_all(&welcome).await?;
            self.drain(hello, &mut writer).await
        }
        .await
        {
            Ok(()) => {
                // The reading side says what it was.
                std::future::pending::<String>().await
            }
            Err(error) => error.to_string(),
        }
    }

    async fn drain(&self, hello: &Hello, writer: &mut BufWriter<OwnedWriteHalf>) -> io::Result<()> {
        loop {
            let woken = self.process.ready.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            match self.process.pop() {
                Next::Item(item) => self.hand_over(hello, writer, item).await?,
                Next::Wait => {
                    writer.flush().await?;
                    if timeout(ALIVE, woken).await.is_err() {
                        writer.write_all(&frame::plain(Kind::Alive, &[])).await?;
                    }
                }
                Next::End => {
                    writer.flush().await?;
                    return writer.shutdown().await;
                }
            }
        }
    }

    async fn hand_over(&self, hello: &Hello, writer: &mut BufWriter<OwnedWriteHalf>, item: Item) -> io::Result<()> {
        let Item { mut bytes, from } = item;
        let Some((link, epoch)) = from else { return writer.write_all(&bytes).await };
        let index = hello.clusters.iter().position(|name| *name == link.peer);
        let length = bytes.len() - HEADER;
        // Its credit comes back also if the connection ends here.
        let _delivery = Delivery { link: &link, process: self.process.number, length, epoch };
        if let Some(index) = index {
            bytes[6..8].copy_from_slice(&(index as u16).to_le_bytes());
            writer.write_all(&bytes).await?;
            count_frame(&self.shared.counters.delivered, length);
        }
        Ok(())
    }
}

/// Waits until a frame may be sent, or says who is lost.
async fn paid(link: &Link, destination: u64, payload: usize) -> Result<(), (u64, String)> {
    loop {
        let woken = link.space.notified();
        tokio::pin!(woken);
        woken.as_mut().enable();
        if link.reserve(destination, payload)? {
            return Ok(());
        }
        woken.await;
    }
}

/// What was paid for, and goes back unless the frame comes.
struct Promise<'a> {
    link: &'a Link,
    destination: u64,
    length: usize,
    kept: bool,
}

impl Promise<'_> {
    fn keep(mut self, bytes: Vec<u8>) {
        self.link.push(bytes, self.length);
        self.kept = true;
    }
}

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.link.release(self.destination, self.length);
        }
    }
}

/// Gives the credit of a frame back.
struct Delivery<'a> {
    link: &'a Link,
    process: u64,
    length: usize,
    epoch: u64,
}

impl Drop for Delivery<'_> {
    fn drop(&mut self) {
        self.link.delivered(self.process, self.length, self.epoch);
    }
}
