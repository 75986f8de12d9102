// SPDX-License-Identifier: BSD-3-Clause
//! Connections between gateways: who makes them, and how both sides find out where they are.
//!
//! Both gateways of a pair connect, if they were given the other's address. The one whose cluster's name
//! comes first does so at once, the other one after half a second without a connection. If both have one,
//! that of the first is used.

use crate::counters::count;
use crate::job::{JobId, Shared};
use crate::link::{Link, Todo};
use crate::noise::{self, About, Opener, Sealer};
use crate::session::serve;
use crate::stream::Welcome;
use crate::wire::{Kind, Resume};
use snow::StatelessTransportState;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::{sleep, timeout};
use tracing::warn;

/// How often a link is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long a connection and its handshake may take.
pub const SHAKE: Duration = Duration::from_secs(3);
/// The longest time between two attempts to connect.
const BACK_OFF: Duration = Duration::from_secs(1);

/// Looks after a link until its job is forgotten: connects again, and gives up.
pub async fn keep(shared: Arc<Shared>, link: Arc<Link>) {
    let config = &shared.config;
    let address = config.peers.get(&link.peer).cloned().flatten();
    let mut wait = LOOK;
    loop {
        match (link.look(config.patience, config.keep_alive), &address) {
            (Todo::Stop, _) => return,
            (Todo::Dial, Some(address)) => {
                // Neither this nor the pause below makes those wait longer who are to be told of a loss.
                let left = link.time_left(config.patience) + LOOK;
                match timeout(SHAKE.min(left), dial(&shared, &link, address)).await {
                    Ok(Ok(())) => wait = LOOK,
                    Ok(Err(error)) => link.failed(&format!("{address}: {error}")),
                    Err(_) => link.failed(&format!("{address} does not answer")),
                }
                sleep(wait.min(link.time_left(config.patience) + LOOK)).await;
                wait = (wait * 2).min(BACK_OFF);
            }
            _ => {
                let _ = timeout(LOOK, link.down.notified()).await;
            }
        }
    }
}

async fn dial(shared: &Arc<Shared>, link: &Arc<Link>, address: &str) -> io::Result<()> {
    let Some(job) = link.job.upgrade() else { return Ok(()) };
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (from, to) = (shared.config.cluster.clone(), link.peer.clone());
    let about = About { hash: job.id.hash, key: job.id.key.clone(), from, to };
    let session = noise::initiate(&mut stream, &about, &job.secret).await?;
    drop(job);
    let (reader, writer) = stream.into_split();
    let (mut opener, mut sealer) = (Opener::new(session.clone(), reader), Sealer::new(session, writer));
    let Some((id, stop, resume)) = link.dialled() else { return Ok(()) };
    let begun = async {
        sealer.send(&resume.encode()).await?;
        let (head, place) = opener.frame().await?;
        match head.kind {
            Kind::Resume => {
                let theirs = Resume::decode(&head, opener.payload(place)).ok_or(io::ErrorKind::InvalidData)?;
                link.resumed(id, &theirs).map_err(io::Error::other)
            }
            Kind::Close => {
                link.closed(head.number, opener.payload(place));
                Err(io::Error::other("the link is closed there"))
            }
            _ => Err(io::Error::other("no RESUME came")),
        }
    };
    // A limit of its own: when it is over the connection must be given back.
    let begun = timeout(SHAKE / 2, begun).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    match begun {
        Ok(()) => {
            let begun = Begun { link: link.clone(), id, stop, opener, sealer };
            tokio::spawn(begun.serve(shared.clone()));
        }
        Err(ref error) => link.disconnected(id, &error.to_string()),
    }
    begun
}

/// Answers a connection of another gateway, and serves it until it ends.
pub async fn answer(shared: Arc<Shared>, stream: TcpStream, permit: OwnedSemaphorePermit) {
    let from = stream.peer_addr().map_or_else(|_| "?".to_owned(), |address| address.to_string());
    let begun = timeout(SHAKE, begin(&shared, stream)).await;
    drop(permit);
    match begun.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(Some(begun)) => begun.serve(shared).await,
        Ok(None) => {}
        Err(error) => {
            count(&shared.counters.refused_links);
            if let Some(left_out) = shared.seldom.now() {
                warn!(from, %error, left_out, "a gateway's connection was refused");
            }
        }
    }
}

/// A session on which both sides have said how far they are.
struct Begun {
    link: Arc<Link>,
    id: u64,
    stop: Arc<Notify>,
    opener: Opener,
    sealer: Sealer,
}

impl Begun {
    async fn serve(self, shared: Arc<Shared>) {
        serve(shared, self.link, self.id, self.stop, self.opener, self.sealer).await;
    }
}

/// Which job it is about, and the session; whoever is at the other end is told why there is none.
async fn shake(shared: &Shared, stream: &mut TcpStream) -> io::Result<(About, Arc<StatelessTransportState>)> {
    stream.set_nodelay(true)?;
    let (about, first) = noise::first(stream).await?;
    let config = &shared.config;
    let refused = if about.to != config.cluster {
        format!("this is the gateway of cluster {}, not {}", config.cluster, about.to)
    } else if !config.peers.contains_key(&about.from) {
        format!("the gateway of cluster {} does not know cluster {}", config.cluster, about.from)
    } else if let Some(secret) = config.keys.get(&about.key) {
        match noise::respond(stream, &first, secret).await {
            Ok(session) => return Ok((about, session)),
            Err(error) => format!("key '{}' at the gateway of cluster {}: {error}", about.key, config.cluster),
        }
    } else {
        format!("the gateway of cluster {} has no key called '{}'", config.cluster, about.key)
    };
    let _ = noise::refuse(stream, &refused).await;
    Err(io::Error::other(refused))
}

/// Handshake, and RESUME both ways. Nothing is made for a job before RESUME has come: only that shows that
/// the other side has the key and is no repetition of an old connection.
async fn begin(shared: &Arc<Shared>, mut stream: TcpStream) -> io::Result<Option<Begun>> {
    let (about, session) = shake(shared, &mut stream).await?;
    let (reader, writer) = stream.into_split();
    let (mut opener, mut sealer) = (Opener::new(session.clone(), reader), Sealer::new(session, writer));
    let (head, place) = opener.frame().await?;
    let theirs = match head.kind {
        Kind::Resume => Resume::decode(&head, opener.payload(place)),
        _ => None,
    };
    let theirs = theirs.ok_or_else(|| io::Error::other("no RESUME came"))?;
    let Some(secret) = shared.config.keys.get(&about.key) else { return Ok(None) };
    let link = shared.link(&JobId { hash: about.hash, key: about.key }, &about.from, secret);
    let link = link.map_err(io::Error::other)?;
    let (id, stop, ours) = match link.called(&theirs) {
        Welcome::Yes(id, stop, ours) => (id, stop, ours),
        Welcome::Busy => return Ok(None),
        Welcome::Close(frame) => return sealer.send(&frame).await.map(|()| None),
    };
    let resumed = match timeout(SHAKE / 2, sealer.send(&ours.encode())).await {
        Ok(Ok(())) => link.resumed(id, &theirs),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("it does not read".to_owned()),
    };
    match resumed {
        Ok(()) => Ok(Some(Begun { link, id, stop, opener, sealer })),
        Err(text) => {
            link.disconnected(id, &text);
            Err(io::Error::other(text))
        }
    }
}
