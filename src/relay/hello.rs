// SPDX-License-Identifier: BSD-3-Clause
//! HELLO: who a process is.
//!
//! The header has the process and the index of its own cluster. The payload: a nonce of 32 bytes; the job's
//! name; the name of the key; the number of clusters (u16) and their names. Every name is its length (u16)
//! and its bytes in UTF-8.

use super::frame::{Fault, Frame, HELLO, Header, Kind, encode};

/// Bytes of a job's name at most.
pub const JOB: usize = 256;
/// Bytes of a cluster's or a key's name at most.
pub const NAME: usize = 64;
/// Clusters at most.
pub const CLUSTERS: usize = 64;
/// Bytes of the payload at most.
pub const LONGEST: usize = 32 + 2 + JOB + 2 + NAME + 2 + CLUSTERS * (2 + NAME);
const _: () = assert!(LONGEST == HELLO);

/// What a process says first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The same on all processes of a job and of no other one: the name space up to `@`, or the job family.
    pub job: String,
    /// `jobid << 32 | vpid`.
    pub process: u64,
    /// Its own cluster, an index into `clusters`.
    pub cluster: u16,
    /// The names of all clusters, in the same order on all processes of the job.
    pub clusters: Vec<String>,
    /// The name of the key that both sides should have.
    pub key: String,
    /// Made anew for each connection.
    pub nonce: [u8; 32],
}

impl Hello {
    /// The whole frame, or what is wrong with these names.
    pub fn encode(&self) -> Result<Vec<u8>, Fault> {
        self.check().map_err(Fault::Hello)?;
        let mut payload = self.nonce.to_vec();
        name(&mut payload, &self.job);
        name(&mut payload, &self.key);
        payload.extend((self.clusters.len() as u16).to_le_bytes());
        self.clusters.iter().for_each(|cluster| name(&mut payload, cluster));
        let header = Header::plain(Kind::Hello, payload.len());
        Ok(encode(Header { cluster: self.cluster, peer: self.process, ..header }, &payload))
    }

    /// Reads it back from a frame of its kind.
    pub fn decode(frame: &Frame<'_>) -> Result<Hello, Fault> {
        let mut rest = frame.payload;
        let hello = Hello::read(frame.header, &mut rest).ok_or(Fault::Hello("a payload that ends too early"))?;
        let end = if rest.is_empty() { hello.check() } else { Err("bytes behind its end") };
        end.map(|()| hello).map_err(Fault::Hello)
    }

    fn read(header: Header, rest: &mut &[u8]) -> Option<Hello> {
        let nonce = rest.split_off(..32)?.try_into().ok()?;
        let (job, key) = (read_name(rest)?, read_name(rest)?);
        let count = read_number(rest)?;
        let clusters = (0..count).map(|_| read_name(rest)).collect::<Option<_>>()?;
        Some(Hello { job, process: header.peer, cluster: header.cluster, clusters, key, nonce })
    }

    fn check(&self) -> Result<(), &'static str> {
        let fits = |name: &str, most: usize| !name.is_empty() && name.len() <= most && !name.contains(char::is_control);
        let doubled = (1..).zip(&self.clusters).any(|(after, name)| self.clusters[after..].contains(name));
        match () {
            () if !fits(&self.job, JOB) => Err("no name of a job, or one over 256 bytes"),
            () if !fits(&self.key, NAME) => Err("no name of a key, or one over 64 bytes"),
            () if self.clusters.len() > CLUSTERS => Err("more than 64 clusters"),
            () if !self.clusters.iter().all(|cluster| fits(cluster, NAME)) => {
                Err("a cluster without a name, or with one over 64 bytes")
            }
            () if doubled => Err("a cluster twice"),
            () if usize::from(self.cluster) >= self.clusters.len() => Err("an own cluster beyond the list of clusters"),
            () if self.process == super::frame::ALL => Err("an invalid process"),
            () => Ok(()),
        }
    }
}

fn name(bytes: &mut Vec<u8>, name: &str) {
    bytes.extend((name.len() as u16).to_le_bytes());
    bytes.extend(name.as_bytes());
}

fn read_number(rest: &mut &[u8]) -> Option<u16> {
    Some(u16::from_le_bytes(rest.split_off(..2)?.try_into().ok()?))
}

/// Bytes that are no UTF-8 end the reading as missing ones do.
fn read_name(rest: &mut &[u8]) -> Option<String> {
    let length = usize::from(read_number(rest)?);
    String::from_utf8(rest.split_off(..length)?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hello() -> Hello {
        let clusters = vec!["north".to_owned(), "süd".to_owned()];
        let (job, key) = ("prterun-n01-4711".to_owned(), "astro".to_owned());
        Hello { job, process: 1 << 32 | 5, cluster: 1, clusters, key, nonce: [7; 32] }
    }

    #[test]
    fn a_hello_comes_back() {
        let bytes = hello().encode().unwrap();
        assert_eq!(Hello::decode(&Frame::parse(&bytes).unwrap().unwrap()), Ok(hello()));
    }

    #[test]
    fn the_longest_fits() {
        let clusters: Vec<String> = (0..CLUSTERS).map(|i| format!("{i:064}")).collect();
        let long = Hello { job: "j".repeat(JOB), key: "k".repeat(NAME), clusters, cluster: 63, ..hello() };
        let bytes = long.encode().unwrap();
        assert_eq!(bytes.len(), crate::relay::frame::HEADER + LONGEST);
        assert_eq!(Hello::decode(&Frame::parse(&bytes).unwrap().unwrap()), Ok(long));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let fault = |hello: Hello| match hello.encode() {
            Err(Fault::Hello(what)) => what,
            other => panic!("{other:?}"),
        };
        assert!(fault(Hello { job: String::new(), ..hello() }).contains("job"));
        assert!(fault(Hello { key: "k".repeat(65), ..hello() }).contains("key"));
        assert!(fault(Hello { key: "a\nb".to_owned(), ..hello() }).contains("key"));
        assert!(fault(Hello { cluster: 2, ..hello() }).contains("own cluster"));
        assert!(fault(Hello { process: u64::MAX, ..hello() }).contains("process"));
        assert!(fault(Hello { clusters: vec!["a".to_owned(), "a".to_owned()], ..hello() }).contains("twice"));
        let many = (0..65).map(|i| i.to_string()).collect();
        assert!(fault(Hello { clusters: many, ..hello() }).contains("64"));
    }

    proptest! {
        /// A right one with some bytes changed, cut, or with bytes behind it.
        #[test]
        fn any_payload_is_read_without_a_panic(
            changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..6),
            cut in 0usize..120, more in 0usize..4,
        ) {
            let whole = hello().encode().unwrap();
            let frame = Frame::parse(&whole).unwrap().unwrap();
            let mut payload = frame.payload[..frame.payload.len().saturating_sub(cut)].to_vec();
            payload.extend(vec![0; more]);
            for (at, byte) in changes {
                let length = payload.len().max(1);
                if let Some(place) = payload.get_mut(at % length) { *place = byte; }
            }
            if let Ok(read) = Hello::decode(&Frame { header: frame.header, payload: &payload }) {
                let again = read.encode().unwrap();
                prop_assert_eq!(Frame::parse(&again).unwrap().unwrap().payload, &payload[..]);
            }
        }
    }
}
