// SPDX-License-Identifier: BSD-3-Clause
//! Clients, a relay of TCP that can be cut, and pairs of gateways.

use coll_rust::relay::frame::{self, HEADER, Header, Kind};
use coll_rust::relay::hello::Hello;
use coll_rust::relay::proof::{self, Side};
use coll_rust_gateway::config::{Config, Log};
use coll_rust_gateway::server::Gateway;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// No test waits longer for one thing: the machine may be busy.
pub const LONG: Duration = Duration::from_secs(20);
/// The secret of the key called so.
pub const KEYS: [(&str, [u8; 32]); 2] = [("astro", [1; 32]), ("bio", [2; 32])];

pub fn process(cluster: u16, rank: u64) -> u64 {
    (7 << 32) + 1000 * u64::from(cluster) + rank
}

/// What a client says of itself.
#[derive(Clone)]
pub struct Who {
    pub job: String,
    pub key: String,
    pub secret: [u8; 32],
    pub cluster: u16,
    pub process: u64,
    pub clusters: Vec<String>,
}

impl Who {
    /// A process of a job with the key `KEYS[key]`.
    pub fn new(job: &str, key: usize, cluster: u16, rank: u64) -> Who {
        let clusters = vec!["north".to_owned(), "south".to_owned()];
        let (job, key_name, secret) = (job.to_owned(), KEYS[key].0.to_owned(), KEYS[key].1);
        Who { job, key: key_name, secret, cluster, process: process(cluster, rank), clusters }
    }

    pub fn hello(&self, nonce: [u8; 32]) -> Vec<u8> {
        let (job, key, clusters) = (self.job.clone(), self.key.clone(), self.clusters.clone());
        Hello { job, process: self.process, cluster: self.cluster, clusters, key, nonce }.encode().unwrap()
    }
}

pub struct Receiver(pub BufReader<OwnedReadHalf>);

impl Receiver {
    /// The next frame but signs of life; `None` at the end.
    pub async fn any(&mut self) -> Option<(Header, Vec<u8>)> {
        loop {
            let frame = self.raw().await?;
            if frame.0.kind != Kind::Alive {
                return Some(frame);
            }
        }
    }

    /// The next frame.
    pub async fn raw(&mut self) -> Option<(Header, Vec<u8>)> {
        let mut head = [0; HEADER];
        self.0.read_exact(&mut head).await.ok()?;
        let header = Header::decode(&head).unwrap();
        let mut payload = vec![0; header.length as usize];
        self.0.read_exact(&mut payload).await.ok()?;
        Some((header, payload))
    }

    /// The same, within the time that tests have.
    pub async fn next(&mut self) -> Option<(Header, Vec<u8>)> {
        tokio::time::timeout(LONG, self.any()).await.expect("nothing came")
    }

    /// The next frame, which must be of this kind; its text.
    pub async fn text(&mut self, kind: Kind) -> (Header, String) {
        let (header, payload) = self.next().await.expect("the connection ended");
        let text = String::from_utf8(payload).unwrap();
        assert_eq!(header.kind, kind, "{text}");
        (header, text)
    }
}

pub struct Sender(pub OwnedWriteHalf);

impl Sender {
    pub async fn send(&mut self, cluster: u16, peer: u64, number: u64, payload: &[u8]) -> std::io::Result<()> {
        let header = Header { cluster, peer, key: peer ^ 5, number, ..Header::plain(Kind::Data, 0) };
        self.0.write_all(&frame::encode(header, payload)).await
    }

    pub async fn bye(mut self) {
        self.0.write_all(&frame::plain(Kind::Bye, &[])).await.unwrap();
    }
}

/// Connects and proves; the text of REFUSED otherwise.
pub async fn connect(address: SocketAddr, who: &Who) -> Result<(Sender, Receiver), String> {
    let (reader, mut writer) = TcpStream::connect(address).await.unwrap().into_split();
    let mut reader = Receiver(BufReader::new(reader));
    let hello = who.hello([9; 32]);
    writer.write_all(&hello).await.unwrap();
    let (header, payload) = reader.next().await.ok_or("the connection ended")?;
    if header.kind == Kind::Refused {
        assert!(reader.next().await.is_none(), "one message says it");
        return Err(String::from_utf8(payload).unwrap());
    }
    assert_eq!(header.kind, Kind::Challenge);
    let (nonce, signed) = payload.split_first_chunk::<32>().unwrap();
    // A client with another key goes on here, as no real one does: the gateway has to notice by itself.
    if KEYS.contains(&(who.key.as_str(), who.secret)) {
        assert!(proof::holds(signed, &who.secret, Side::Gateway, &hello, nonce));
    }
    let signed = proof::make(&who.secret, Side::Process, &hello, nonce);
    writer.write_all(&frame::plain(Kind::Proof, &signed)).await.unwrap();
    let (header, payload) = reader.next().await.ok_or("the connection ended")?;
    if header.kind == Kind::Refused {
        assert!(reader.next().await.is_none(), "one message says it");
        return Err(String::from_utf8(payload).unwrap());
    }
    assert_eq!(header.kind, Kind::Welcome);
    Ok((Sender(writer), reader))
}

/// Numbers that are the same in each run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}

/// What a stream's frame with this number holds: its length and content follow from it.
pub fn content(number: u64, most: u64) -> Vec<u8> {
    let mut random = Random(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    random.next();
    let length = if number.is_multiple_of(8) { random.below(most) } else { random.below(200.min(most)) };
    let seed = random.next();
    (0..length).map(|at| (seed >> (at % 8 * 8)) as u8 ^ at as u8).collect()
}

/// Sends `count` frames of a stream.
pub async fn stream_out(sender: &mut Sender, to: (u16, u64), count: u64, most: u64) {
    for number in 0..count {
        sender.send(to.0, to.1, number, &content(number, most)).await.unwrap();
    }
}

/// Receives as many from one process, in order and whole.
pub async fn stream_in(receiver: &mut Receiver, from: (u16, u64), count: u64, most: u64) {
    for number in 0..count {
        let (header, payload) = receiver.next().await.expect("the connection ended");
        assert_eq!((header.kind, header.cluster, header.peer), (Kind::Data, from.0, from.1), "{number}");
        assert_eq!(header.number, number);
        assert!(payload == content(number, most), "the content of {number}");
    }
}

/// What a [`Wire`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    Pass,
    /// Ends connections, and new ones at once.
    Cut,
    /// Connections there are stay, and nothing comes through any more; new ones pass. A number for each time.
    Freeze(u32),
}

/// A relay of TCP between the gateways.
pub struct Wire {
    pub address: SocketAddr,
    target: Arc<Mutex<Option<SocketAddr>>>,
    does: watch::Sender<Does>,
    /// All that came through it in the direction of the connections.
    pub seen: Arc<Mutex<Vec<u8>>>,
}

impl Wire {
    pub async fn new() -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let target = Arc::new(Mutex::new(None::<SocketAddr>));
        let (does, watched) = watch::channel(Does::Pass);
        let (to, seen) = (target.clone(), Arc::new(Mutex::new(Vec::new())));
        let record = seen.clone();
        tokio::spawn(async move {
            loop {
                let (near, _) = listener.accept().await.unwrap();
                let to = *to.lock().unwrap();
                let (Some(to), true) = (to, *watched.borrow() != Does::Cut) else { continue };
                let Ok(far) = TcpStream::connect(to).await else { continue };
                let (near, far) = (near.into_split(), far.into_split());
                tokio::spawn(pump(near.0, far.1, watched.clone(), Some(record.clone())));
                tokio::spawn(pump(far.0, near.1, watched.clone(), None));
            }
        });
        Wire { address, target, does, seen }
    }

    pub fn to(&self, target: SocketAddr) {
        *self.target.lock().unwrap() = Some(target);
    }

    pub fn set(&self, does: Does) {
        self.does.send(does).unwrap();
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut does: watch::Receiver<Does>,
    seen: Option<Arc<Mutex<Vec<u8>>>>,
) {
    let born = *does.borrow();
    let mut bytes = vec![0; 16 * 1024];
    loop {
        let now = *does.borrow_and_update();
        match now {
            Does::Cut => return,
            // Whoever came after the freezing is not meant.
            Does::Freeze(_) if now != born => {
                std::future::pending::<()>().await;
            }
            _ => {}
        }
        tokio::select! {
            _ = does.changed() => {}
            read = from.read(&mut bytes) => {
                let Ok(length @ 1..) = read else { return };
                if let Some(seen) = &seen {
                    seen.lock().unwrap().extend(&bytes[..length]);
                }
                if to.write_all(&bytes[..length]).await.is_err() { return }
            }
        }
    }
}

/// A configuration for tests: short times.
pub fn config(cluster: &str, peer: &str, wire: SocketAddr) -> Config {
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    Config {
        cluster: cluster.to_owned(),
        inside: any,
        outside: any,
        metrics: Some(any),
        keys: KEYS.iter().map(|(name, secret)| ((*name).to_owned(), *secret)).collect::<HashMap<_, _>>(),
        log: Log::Error,
        memory: 16 << 20,
        jobs: 8,
        processes: 32,
        patience: Duration::from_secs(15),
        keep_alive: Duration::from_millis(300),
        peers: BTreeMap::from([(peer.to_owned(), Some(wire.to_string()))]),
    }
}

/// Two gateways, and the wires to each of them.
pub struct Pair {
    pub north: Gateway,
    pub south: Gateway,
    pub to_north: Wire,
    pub to_south: Wire,
}

impl Pair {
    pub async fn new() -> Pair {
        Pair::with(|_| {}).await
    }

    pub async fn with(change: impl Fn(&mut Config)) -> Pair {
        let (to_north, to_south) = (Wire::new().await, Wire::new().await);
        let mut north = config("north", "south", to_south.address);
        let mut south = config("south", "north", to_north.address);
        change(&mut north);
        change(&mut south);
        let (north, south) = (Gateway::start(north).await.unwrap(), Gateway::start(south).await.unwrap());
        to_north.to(north.outside);
        to_south.to(south.outside);
        Pair { north, south, to_north, to_south }
    }

    pub fn inside(&self, cluster: u16) -> SocketAddr {
        if cluster == 0 { self.north.inside } else { self.south.inside }
    }

    pub async fn connect(&self, who: &Who) -> (Sender, Receiver) {
        connect(self.inside(who.cluster), who).await.unwrap()
    }

    /// A process in each cluster, `rank` in both.
    pub async fn two(&self, job: &str, key: usize, rank: u64) -> [(Sender, Receiver); 2] {
        let [north, south] = [0, 1].map(|cluster| Who::new(job, key, cluster, rank));
        [self.connect(&north).await, self.connect(&south).await]
    }

    pub fn set(&self, does: Does) {
        self.to_north.set(does);
        self.to_south.set(does);
    }

    pub async fn stop(self) {
        self.north.stop().await;
        self.south.stop().await;
    }
}

/// Waits for something to become true.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// One frame there and one back, `count` times; the time it took.
pub async fn ping_pong(two: &mut [(Sender, Receiver); 2], rank: u64, count: u64) -> Duration {
    let begun = std::time::Instant::now();
    let [north, south] = two;
    for number in 0..count {
        north.0.send(1, process(1, rank), number, b"ping").await.unwrap();
        assert_eq!(south.1.next().await.unwrap().0.number, number);
        south.0.send(0, process(0, rank), number, b"pong").await.unwrap();
        assert_eq!(north.1.next().await.unwrap().0.number, number);
    }
    begun.elapsed()
}
