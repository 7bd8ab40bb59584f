//! The rules, native or in the component: the same calls on both, so that one test
//! can be run on either.

use tidegate_membership::policy::{self, FanOut, Membership, Status};
use tidegate_membership::record;
use wasmtime::component::Linker;
use wasmtime::{Config, Engine, Store};

mod bindings {
    wasmtime::component::bindgen!({ path: "../wit", world: "membership-component" });
}

use bindings::MembershipComponent;
use bindings::exports::tidegate::community::membership as wit;
use bindings::exports::tidegate::community::types::MembershipStatus;

/// An instance of a component of rules.
pub(crate) struct Component {
    store: Store<()>,
    exports: MembershipComponent,
}

/// The component that ships with the crate.
pub(crate) fn shipped() -> Component {
    let mut config = Config::new();
    config.concurrency_support(false);
    let engine = Engine::new(&config).unwrap();
    let component =
        wasmtime::component::Component::new(&engine, tidegate::SHIPPED_COMPONENT).unwrap();
    let mut store = Store::new(&engine, ());
    let linker = Linker::new(&engine);
    let exports = MembershipComponent::instantiate(&mut store, &component, &linker).unwrap();
    Component { store, exports }
}

/// The rules under test, native or in the component.
pub(crate) trait Rules {
    fn leave(&mut self, current: Membership, now_ns: u64) -> Membership;
    fn rejoin(&mut self, current: Membership) -> Membership;
    fn status(&mut self, user_id: u64, stored: Option<&[u8]>) -> Option<Membership>;
    fn signal(&mut self, current: Membership) -> FanOut;
    fn serialize(&mut self, membership: Membership) -> Vec<u8>;
    fn deserialize(&mut self, user_id: u64, bytes: &[u8]) -> Option<Membership>;
    fn restore(
        &mut self,
        users: &[u64],
        lengths: &[u32],
        bytes: &[u8],
    ) -> Vec<Option<(Membership, FanOut)>>;
}

/// The functions of the guest's crate.
pub(crate) struct Native;

impl Rules for Native {
    fn leave(&mut self, current: Membership, now_ns: u64) -> Membership {
        policy::leave(current, now_ns)
    }

    fn rejoin(&mut self, current: Membership) -> Membership {
        policy::rejoin(current)
    }

    fn status(&mut self, user_id: u64, stored: Option<&[u8]>) -> Option<Membership> {
        policy::status(user_id, stored).ok()
    }

    fn signal(&mut self, current: Membership) -> FanOut {
        policy::signal(current)
    }

    fn serialize(&mut self, membership: Membership) -> Vec<u8> {
        record::serialize(&membership).to_vec()
    }

    fn deserialize(&mut self, user_id: u64, bytes: &[u8]) -> Option<Membership> {
        record::deserialize(user_id, bytes).ok()
    }

    fn restore(
        &mut self,
        users: &[u64],
        lengths: &[u32],
        bytes: &[u8],
    ) -> Vec<Option<(Membership, FanOut)>> {
        policy::restore(users, lengths, bytes).collect()
    }
}

impl Rules for Component {
    fn leave(&mut self, current: Membership, now_ns: u64) -> Membership {
        let exports = self.exports.tidegate_community_membership();
        let result = exports.call_leave(&mut self.store, to_wit(current), now_ns);
        from_wit(result.unwrap())
    }

    fn rejoin(&mut self, current: Membership) -> Membership {
        let exports = self.exports.tidegate_community_membership();
        from_wit(
            exports
                .call_rejoin(&mut self.store, to_wit(current))
                .unwrap(),
        )
    }

    fn status(&mut self, user_id: u64, stored: Option<&[u8]>) -> Option<Membership> {
        let exports = self.exports.tidegate_community_membership();
        let result = exports.call_status(&mut self.store, user_id, stored);
        result.unwrap().ok().map(from_wit)
    }

    fn signal(&mut self, current: Membership) -> FanOut {
        let exports = self.exports.tidegate_community_membership();
        let flags = exports
            .call_signal(&mut self.store, to_wit(current))
            .unwrap();
        fan_out(flags)
    }

    fn serialize(&mut self, membership: Membership) -> Vec<u8> {
        let exports = self.exports.tidegate_community_membership();
        let bytes = exports.call_serialize_membership(&mut self.store, to_wit(membership));
        bytes.unwrap()
    }

    fn deserialize(&mut self, user_id: u64, bytes: &[u8]) -> Option<Membership> {
        let exports = self.exports.tidegate_community_membership();
        let membership = exports.call_deserialize_membership(&mut self.store, user_id, bytes);
        membership.unwrap().map(from_wit)
    }

    fn restore(
        &mut self,
        users: &[u64],
        lengths: &[u32],
        bytes: &[u8],
    ) -> Vec<Option<(Membership, FanOut)>> {
        let exports = self.exports.tidegate_community_membership();
        let restored = exports.call_restore(&mut self.store, users, lengths, bytes);
        let entries = restored.unwrap().into_iter();
        entries
            .map(|entry| entry.map(|entry| (from_wit(entry.membership), fan_out(entry.fan_out))))
            .collect()
    }
}

fn fan_out(flags: wit::FanOut) -> FanOut {
    FanOut {
        cohort_attribution: flags.contains(wit::FanOut::COHORT_ATTRIBUTION),
        community_forwarding: flags.contains(wit::FanOut::COMMUNITY_FORWARDING),
    }
}

fn to_wit(membership: Membership) -> wit::CommunityMembership {
    wit::CommunityMembership {
        user_id: membership.user_id,
        status: match membership.status {
            Status::Active => MembershipStatus::Active,
            Status::Left => MembershipStatus::Left,
        },
        left_at_ns: membership.left_at_ns,
    }
}

fn from_wit(membership: wit::CommunityMembership) -> Membership {
    Membership {
        user_id: membership.user_id,
        status: match membership.status {
            MembershipStatus::Active => Status::Active,
            MembershipStatus::Left => Status::Left,
        },
        left_at_ns: membership.left_at_ns,
    }
}
