// SPDX-License-Identifier: BSD-3-Clause
//! Where gateways are.

/// The gateways that clusters have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gateways {
    /// Name of the cluster, or nothing, for all; and host and port.
    list: Vec<(String, String)>,
}

impl Gateways {
    /// `none`, one address for all clusters, or a list by cluster.
    pub(super) fn parse(text: &str) -> Result<Gateways, String> {
        let text = text.trim();
        if text.is_empty() || text == "none" {
            return Ok(Gateways::default());
        }
        let mut list: Vec<(String, String)> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (name, address) = part.split_once('=').unwrap_or(("", part));
            let (name, address) = (name.trim(), address.trim());
            let (host, port) = address.rsplit_once(':').ok_or_else(|| format!("\"{part}\" has no port"))?;
            if host.is_empty() || port.parse::<u16>().is_ok_and(|port| port == 0) || port.parse::<u16>().is_err() {
                return Err(format!("\"{address}\" is not a host and a port"));
            }
            if part.contains('=') == name.is_empty() || (name.is_empty() && text.contains(',')) {
                return Err(format!("\"{part}\" names no cluster"));
            }
            if list.iter().any(|(other, _)| other == name) {
                return Err(format!("cluster \"{name}\" twice"));
            }
            list.push((name.to_owned(), address.to_owned()));
        }
        Ok(Gateways { list })
    }

    /// Whether there is a key for them.
    pub(super) fn check(&self, key: &str) -> Result<(), String> {
        match !self.is_empty() && key.is_empty() {
            true => {
                Err("coll_rust_gateway names gateways, but coll_rust_gateway_key no file with the key for them. Ask \
                         who runs the gateways for one."
                    .to_owned())
            }
            false => Ok(()),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Host and port of the gateway of a cluster.
    pub fn of(&self, cluster: &str) -> Option<&str> {
        let found = self.list.iter().find(|(name, _)| name.is_empty() || name == cluster);
        found.map(|(_, address)| address.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_by_cluster_or_one_for_all() {
        let all = |text: &str| Gateways::parse(text).expect(text);
        assert!(all("").is_empty() && all("none").is_empty());
        assert_eq!(all("head:7000").of("north"), Some("head:7000"));
        let list = all("north=h1:7000, south=[fd00::1]:80");
        assert_eq!(["north", "south", "west"].map(|c| list.of(c)), [Some("h1:7000"), Some("[fd00::1]:80"), None]);
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["h", "h:", ":1", "h:0", "h:65536", "=h:1", "a=h:1,h:2", "a=h:1,a=h:2", "a=h:1,"] {
            assert!(Gateways::parse(text).is_err(), "{text}");
        }
    }
}
