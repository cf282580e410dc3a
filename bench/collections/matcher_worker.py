"""Splink or dedupe on records that come in as JSON, in a process that sees their own folder only.

Both are used as their manuals say: comparisons and blocking rules for names, values and neighbours; Splink estimates its
weights from the data, dedupe learns from labelled pairs, of which it is given those of another generated collection.
"""

import json
import logging
import random
import sys
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
THRESHOLD = 0.9


def run_splink(records, _):
    import duckdb
    import pyarrow as pa
    import splink
    import splink.comparison_library as cl
    from splink import DuckDBAPI, Linker, SettingsCreator, block_on

    table = pa.Table.from_pylist(
        [
            {
                "unique_id": one["id"],
                "name": one["name"],
                "last": one["name"].split()[-1],
                "first": one["name"][0],
                "kind": one["kind"],
                "year": one["year"] or None,
                "registration": one["registration"] or None,
                "near": one["near"],
            }
            for one in records
        ]
    )
    settings = SettingsCreator(
        link_type="dedupe_only",
        comparisons=[
            cl.JaroWinklerAtThresholds("name", [0.97, 0.92, 0.8]),
            cl.ExactMatch("year"),
            cl.ExactMatch("registration"),
            cl.ArrayIntersectAtSizes("near", [2, 1]),
        ],
        blocking_rules_to_generate_predictions=[
            block_on("kind", "name"),
            block_on("kind", "last", "first"),
            block_on("registration"),
            block_on("kind", "substr(name, 1, 4)"),
        ],
    )
    connection = duckdb.connect()
    api = DuckDBAPI(connection=connection)
    try:
        linker = Linker(table, settings, api)
    except TypeError:
        linker = Linker(api.register(table), settings)
    linker.training.estimate_probability_two_random_records_match([block_on("kind", "name")], recall=0.8)
    linker.training.estimate_u_using_random_sampling(max_pairs=1e6)
    for rule in (block_on("kind", "name"), block_on("registration"), block_on("year"), block_on("kind", "last")):
        linker.training.estimate_parameters_using_expectation_maximisation(rule)
    predicted = linker.inference.predict(threshold_match_probability=THRESHOLD)
    clusters = linker.clustering.cluster_pairwise_predictions_at_threshold(predicted, THRESHOLD)
    rows = clusters.as_record_list()
    return {row["unique_id"]: str(row["cluster_id"]) for row in rows}, splink.__version__


def run_dedupe(records, training):
    import io
    from importlib.metadata import version

    import dedupe
    import joblib
    from dedupe import variables

    def fields(one):
        return {
            "name": one["name"].lower(),
            "kind": one["kind"],
            "year": one["year"] or None,
            "registration": one["registration"] or None,
            "near": tuple(sorted(one["near"])) or None,
        }

    data = {one["id"]: fields(one) for one in records}
    matcher = dedupe.Dedupe(
        [
            variables.String("name"),
            variables.Exact("kind"),
            variables.Exact("year", has_missing=True),
            variables.Exact("registration", has_missing=True),
            variables.Set("near", has_missing=True),
        ],
        num_cores=1,
    )
    draw = random.Random(1)
    groups = {}
    for one in training:
        groups.setdefault(one["truth"], []).append(fields(one))
    match = [tuple(draw.sample(members, 2)) for members in groups.values() if len(members) > 1][:300]
    many = list(groups.values())
    distinct = [tuple(draw.choice(group) for group in draw.sample(many, 2)) for _ in range(300)]
    # Those that are hard to tell apart teach most.
    by_name = {}
    for members in groups.values():
        by_name.setdefault(members[0]["name"].split()[-1], []).append(members[0])
    distinct += [(members[0], members[1]) for members in by_name.values() if len(members) > 1][:100]
    pairs = {"match": [_tupled(pair) for pair in match], "distinct": [_tupled(pair) for pair in distinct]}
    labelled = io.StringIO(json.dumps(pairs))
    matcher.prepare_training(data, training_file=labelled, sample_size=1500)
    # Processes of their own would not find the packages.
    with joblib.parallel_backend("threading"):
        matcher.train(recall=0.95, index_predicates=False)
    found = {}
    for number, (members, _) in enumerate(matcher.partition(data, 0.5)):
        found.update(dict.fromkeys(members, str(number)))
    return found, version("dedupe")


def _tupled(value):
    """A value as dedupe reads it from a file of training: JSON has no tuples, and lists cannot be looked up."""
    if isinstance(value, dict):
        return {name: _tupled(one) for name, one in value.items()}
    if isinstance(value, tuple):
        return {"__class__": "tuple", "__value__": [_tupled(one) for one in value]}
    return value


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[2])
    given = json.load(sys.stdin)
    work = {"splink": run_splink, "dedupe": run_dedupe}[sys.argv[1]]
    sys.stdout, answer = sys.stderr, sys.stdout
    found, version = work(given["records"], given["training"])
    json.dump({"found": found, "version": version}, answer)
