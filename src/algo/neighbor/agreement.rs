// SPDX-License-Identifier: BSD-3-Clause
//! What members find out together, where each only knows its own edges.

use crate::algo::data::{announced, numbers};
use crate::algo::join;
use crate::endpoint::{Endpoint, Rank, Result, Tag, TempBuffer};
use crate::pattern::neighborhood::{Edge, Neighbors};

/// Whether all ranks hang together by edges, in whichever direction; the same on all ranks that do. Ranks
/// only have messages with their `peers`, at the other ends of their edges: each tells them whom it has heard
/// of, until it has told them of all. Uses one phase.
///
/// Cost: as many steps as ranks are apart, at most p · p / 8 bytes along each edge and way; p steps where
/// they do not hang together.
pub async fn connected<E: Endpoint>(ep: &E, tag: Tag, peers: &[Rank]) -> Result<bool> {
    let size = ep.size() as usize;
    let mut known = vec![0_u8; size.div_ceil(8)];
    let add = |known: &mut [u8], rank: Rank| known[rank as usize / 8] |= 1 << (rank % 8);
    let is_all = |known: &[u8]| known.iter().map(|byte| byte.count_ones() as usize).sum::<usize>() == size;
    peers.iter().chain([&ep.rank()]).for_each(|&rank| add(&mut known, rank));
    let (mut open, mut told) = (peers.to_vec(), false);
    for _ in 0..size {
        if told && open.is_empty() {
            break;
        }
        let mine = ep.temp(known.len())?;
        ep.write(&known, mine.span());
        let theirs: Vec<_> = open.iter().map(|_| ep.temp(known.len())).collect::<Result<_>>()?;
        let receives: Vec<_> = open.iter().zip(&theirs).map(|(&peer, temp)| ep.recv(peer, tag, temp.span())).collect();
        let sends: Vec<_> = peers.iter().filter(|_| !told).map(|&peer| ep.send(peer, tag, mine.span())).collect();
        told = is_all(&known);
        join(receives).await?;
        let mut heard = vec![0_u8; known.len()];
        let mut theirs = theirs.iter();
        open.retain(|_| {
            let Some(temp) = theirs.next() else { return false };
            ep.read(temp.span(), &mut heard);
            known.iter_mut().zip(&heard).for_each(|(known, heard)| *known |= heard);
            !is_all(&heard)
        });
        join(sends).await?;
    }
    Ok(is_all(&known))
}

/// What all of `ranks` know of their edges, by what each of them knows. Uses four phases.
///
/// Cost: gathered by the first rank, which sends all to all: 4 steps; 16 bytes per end of an edge.
pub async fn lists<E: Endpoint>(ep: &E, tag: Tag, ranks: &[Rank], mine: &Neighbors) -> Result<Vec<(usize, Neighbors)>> {
    let tag = |phase| Tag { phase: tag.phase + phase, ..tag };
    let own = encode(mine);
    let (leader, others) = (ranks[0], &ranks[1..]);
    let mut all = vec![own.clone()];
    if ep.rank() != leader {
        ep.send(leader, tag(0), numbers(ep, [own.len()])?.span()).await?;
        ep.send(leader, tag(1), numbers(ep, own)?.span()).await?;
        let lens = announced(ep, ranks.len())?;
        ep.recv(leader, tag(2), lens.span()).await?;
        let lens = lens.get()?;
        let lists = announced(ep, lens.iter().sum())?;
        ep.recv(leader, tag(3), lists.span()).await?;
        let lists = lists.get()?;
        let mut rest = &lists[..];
        all = lens.iter().map(|&len| rest.split_off(..len).unwrap_or_default().to_vec()).collect();
    } else {
        let lens: Vec<_> = others.iter().map(|_| announced(ep, 1)).collect::<Result<_>>()?;
        join(others.iter().zip(&lens).map(|(&rank, len)| ep.recv(rank, tag(0), len.span())).collect::<Vec<_>>())
            .await?;
        let lists: Vec<_> = lens.iter().map(|len| announced(ep, len.get()?[0])).collect::<Result<_>>()?;
        join(others.iter().zip(&lists).map(|(&rank, list)| ep.recv(rank, tag(1), list.span())).collect::<Vec<_>>())
            .await?;
        for list in &lists {
            all.push(list.get()?.to_vec());
        }
        let (lens, lists) = (numbers(ep, all.iter().map(Vec::len))?, numbers(ep, all.iter().flatten().copied())?);
        let to = |&rank: &Rank| [ep.send(rank, tag(2), lens.span()), ep.send(rank, tag(3), lists.span())];
        join(others.iter().flat_map(to).collect::<Vec<_>>()).await?;
    }
    Ok(ranks.iter().zip(&all).map(|(&rank, list)| (rank as usize, decode(list))).collect())
}

/// A list of destinations, one of sources, each after its length.
fn encode(neighbors: &Neighbors) -> Vec<usize> {
    let list = |edges: &[Edge]| -> Vec<usize> {
        std::iter::once(edges.len()).chain(edges.iter().flat_map(|edge| [edge.peer, edge.slot])).collect()
    };
    [list(&neighbors.destinations), list(&neighbors.sources)].concat()
}

fn decode(numbers: &[usize]) -> Neighbors {
    let mut numbers = numbers.iter().copied();
    let mut list = || -> Vec<Edge> {
        let len = numbers.next().unwrap_or(0);
        let mut edge = || Some(Edge { peer: numbers.next()?, slot: numbers.next()? });
        (0..len).map_while(|_| edge()).collect()
    };
    Neighbors { destinations: list(), sources: list(), own: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_arrive_as_they_were() {
        let some = Neighbors::listed(2, 5, &[1, 3, 3, 4], &[0, 1, 1]);
        assert_eq!(decode(&encode(&some)), some);
        assert_eq!(decode(&encode(&Neighbors::default())), Neighbors::default());
    }
}
