"""Two tenants, two users, two scopes with one key never meet: on the memory store, through the engine."""

from random import Random

from sameas import Engine, open_store
from sameas.identity.scope import Principal

PAIRS = 10_000
# Everything that somebody, somewhere, joins ids with.
PIECES = [
    *":|/\\.,;-_ \"'=%#\t",
    "::",
    "a",
    "b",
    "é",
    "\u0301",
    "é".encode().decode("latin-1"),
    "1:",
    "0",
    "client",
    "",
]


class Engines:
    """Runs work under identities and sees that each gets its own result and no other's."""

    def __init__(self):
        self.engine = Engine(open_store("memory://"))
        self.runs = {}

    def run(self, identity):
        tenant, scope, user, key = identity
        owner = Principal(tenant_id=tenant, user_id=user)

        def work(_):
            self.runs[identity] = self.runs.get(identity, 0) + 1
            return list(identity)

        result = self.engine.run(work, tenant=tenant, scope=scope, key=f"{owner.digest}.{key}", payload="same")
        assert result == list(identity)


def text(random, least=1):
    return "".join(random.choices(PIECES, k=random.randint(least, 4))) or "x"


def pair(random):
    """Two identities with one key that differ in tenant, scope or user, half of them by where the delimiter is."""
    one = [text(random), text(random), "u" + text(random), text(random)]
    other = [*one]
    place = random.randrange(3)
    if random.random() < 0.5:
        delimiter = random.choice(":|/.,- ")
        left, middle, right = text(random), text(random), text(random)
        following = (place + 1) % 3
        one[place], one[following] = f"{left}{delimiter}{middle}", right
        other[place], other[following] = left, f"{middle}{delimiter}{right}"
    else:
        while other[place] == one[place]:
            other[place] = ("u" if place == 2 else "") + text(random)
    return tuple(one), tuple(other)


def usable(identity):
    return identity[2].isprintable()


def test_ten_thousand_pairs_with_one_key_never_meet():
    random, engines, pairs = Random(4), Engines(), 0
    while pairs < PAIRS:
        one, other = pair(random)
        if one == other or not (usable(one) and usable(other)):
            continue
        pairs += 1
        engines.run(one)
        engines.run(other)
    assert set(engines.runs.values()) == {1}
    assert len(engines.runs) > PAIRS


def test_a_delimiter_inside_an_id_moves_no_border():
    engines = Engines()
    for identity in [
        ("a:b", "c", "u", "k"),
        ("a", "b:c", "u", "k"),
        ("a", "b", "u", "c:k"),
        ("a", "b:c:u", "k", "k"),
        ("", "a:b:c", "u", "k"),
        ("a:b:c", "u", "k", "k"),
    ]:
        engines.run(identity)
        engines.run(identity)
    assert [*engines.runs.values()] == [1] * 6


def test_a_service_and_a_user_of_one_name_never_meet():
    engine, runs = Engine(open_store("memory://")), []
    for owner in (Principal(tenant_id="t", user_id="a"), Principal(tenant_id="t", service_id="a")):
        engine.run(lambda _: runs.append(1), tenant="t", scope="s", key=f"{owner.digest}.k")
    assert len(runs) == 2
