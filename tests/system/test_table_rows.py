"""Two tables say what must be survived: faults of the system (49 rows), and wrong input (63 rows). Every row has its test.

A row's test has its number in its name, or in the id of a case; those that are called otherwise are listed here. Deployments that
the suite cannot make on one machine (cgroups of a container, say) are told from functions that are given what they would see.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FILES = {path.name: "\n".join(each.read_text("utf-8") for each in TESTS.rglob(path.name)) for path in TESTS.rglob("test_*.py")}

FAULTS = {
    1: "test_store_crash.py::test_killed_at_random_times",
    2: "test_store_crash.py::test_killed_at_steps_of_every_kind_and_resumed",
    3: "test_store_crash.py::test_a_finished_shard_whose_file_is_gone_is_written_again",
    4: "test_checkpoint.py::test_killed_anywhere_it_goes_on_to_the_same_bits",
    5: "test_checkpoint.py::test_killed_anywhere_it_goes_on_to_the_same_bits",
    6: "test_models.py::test_a_kill_leaves_the_old_model",
    7: "test_checkpoint.py::test_a_second_signal_ends_at_once",
    8: "test_checkpoint.py::test_a_signal_leaves_model_and_checkpoint_and_resume_ends_as_undisturbed",
    9: "test_system_faults.py::test_a_process_that_is_stopped_for_a_while_goes_on",
    10: "test_system_faults.py::test_a_disk_that_fills_up_and_gets_larger",
    11: "test_checkpoint.py::test_a_full_disk_costs_a_checkpoint_and_not_the_run",
    12: "test_outputs.py::test_46_a_device_that_is_full_is_a_full_disk",
    13: "test_store_crash.py::test_a_full_disk_is_named_and_survived",
    14: "test_store_crash.py::test_a_file_size_limit_is_a_full_disk",
    15: "test_store_faults.py::test_reads_that_fail_are_tried_again_twice",
    16: "test_store_crash.py::test_a_failing_fsync_is_fatal_for_its_commit",
    17: "test_system_faults.py::test_a_store_that_may_not_be_written_is_trained_on",
    18: "test_store_faults.py::test_every_flipped_bit_is_found_and_no_reader_returns_other_numbers",
    19: "test_store_faults.py::test_every_flipped_bit_is_found_and_no_reader_returns_other_numbers",
    20: "test_store_faults.py::test_wrong_lengths_and_missing_files_are_found_without_reading_data",
    21: "test_store_faults.py::test_missing_and_short_chunks_stop_reading",
    22: "test_store_faults.py::test_sound_checksums_over_wrong_content_do_not_help",
    23: "test_store_faults.py::test_a_store_that_was_replaced_meanwhile_is_noticed",
    24: "test_store_crash.py::test_what_killed_writers_left_is_removed",
    25: "test_store_crash.py::test_two_writers_of_one_store",
    26: "test_cluster.py::test_a_worker_that_dies_changes_nothing",
    27: "test_cluster.py::test_when_all_workers_die_the_checkpoint_is_good",
    28: "test_cluster.py::test_a_worker_with_too_little_memory_is_refused",
    29: "test_cluster.py::test_a_cluster_of_ones_own_has_a_slow_worker_loses_the_other_then_its_scheduler",
    30: "test_cluster.py::test_a_cluster_of_ones_own_has_a_slow_worker_loses_the_other_then_its_scheduler",
    31: "test_memory.py::test_a_limit_of_the_system_is_a_memory_error_and_what_was_planned_is_enough",
    32: "test_system_faults.py::test_a_clock_that_is_set_back_has_no_effect",
    33: "test_system_faults.py::test_another_thread_and_another_hash_seed_give_the_same_bits",
    34: "test_store_power_loss.py::test_the_power_goes_while_a_store_is_made",
    35: "test_process_faults.py::test_35_streams",
    36: "test_process_faults.py::test_36_few_descriptors",
    37: "test_hostile_store.py::test_37_shards_that_changed_places",
    38: "test_hostile_store.py::test_38_metadata_that_was_edited",
    39: "test_cluster.py::test_39_a_shard_that_kills_every_worker",
    40: "test_jit.py::test_40_a_damaged_cache_is_compiled_anew",
    41: "test_process_faults.py::test_41_too_little_memory_from_the_start",
    42: "test_hostile_store.py::test_42_no_file_where_a_file_should_be",
    43: "test_foreign_files.py::test_43_what_is_at_the_place_of_the_output_and_somebody_elses",
    44: "test_outputs.py::test_44_what_a_killed_write_left_goes_with_the_next",
    45: "test_outputs.py::test_45_a_second_train_to_one_model_fails_and_changes_nothing",
    46: "test_outputs.py::test_46_links_are_followed_and_stay",
    47: "test_process_faults.py::test_47_hang_up_ends_training_in_good_order",
    48: "test_hostile_store.py::test_48_numbers_that_the_rows_exceed",
}
REMOTE = "test_remote_store.py"  # row 49 of the faults: all of it
BAD_INPUT = {
    53: "test_bad_input_more.py::test_53_carriage_returns_alone",
    54: "test_bad_input_more.py::test_54_wide_indices",
    55: "test_bad_input_more.py::test_55_damaged_compression",
    56: "test_bad_input_more.py::test_56_a_legal_row_beyond_the_memory_is_read_with_more",
    57: "test_changed_input.py::test_57_every_change_of_every_kind_of_input",
    58: "test_bad_input_more.py::test_58_anndata_is_converted_by_the_line_that_is_named",
    59: "test_row_weights.py::test_59_weights",
    60: "test_visible_commands.py::test_60_every_command",
    61: "test_bad_input_more.py::test_61_the_first_error",
    62: "test_bad_input_more.py::test_62_no_memory",
    63: "test_malformed_tables.py::test_bad_csv",
    64: "test_canonical.py::test_row_64_times_that_no_calendar_has",
    65: "test_canonical.py::test_row_65_dictionaries_are_plain_columns",
    67: "test_canonical.py::test_row_67_a_column_that_is_called_like_a_cross",
    68: "test_canonical.py::test_row_68_a_word_among_numbers",
}


PASSED_OVER = re.compile(r"mark\.(skip|skipif|xfail|long)\b")


def functions(file: str) -> dict[str, ast.FunctionDef]:
    """The tests at the top of a test file."""
    found = {node.name: node for node in ast.parse(FILES[file]).body if isinstance(node, ast.FunctionDef)}
    return {name: node for name, node in found.items() if name.startswith("test_")}


def missing(places: dict[int, str]) -> dict[int, str]:
    return {row: place for row, place in places.items() if place.split("::")[1] not in functions(place.split("::")[0])}


def test_every_row_of_the_table_of_faults_has_its_test():
    assert sorted(FAULTS) == list(range(1, 49))
    assert functions(REMOTE)
    assert not missing(FAULTS)


def test_every_row_of_the_list_of_wrong_input_has_its_test():
    from kit.bad_input import TEXTS

    tests = {int(number[1]) for name in functions("test_bad_input.py") if (number := re.match(r"test_(\d+)_", name))}
    covered = tests | {int(case[0].split("-")[0]) for case in TEXTS} | set(BAD_INPUT)
    assert sorted(set(range(1, 64)) - covered) == [46]  # 46: stores in zip files, which are refused as any other file
    assert not missing(BAD_INPUT)


@pytest.mark.parametrize("place", sorted({*FAULTS.values(), *BAD_INPUT.values()}))
def test_no_row_is_passed_over(place):
    """By a mark of the whole test: it is no test of some machines, or of some nights, and not expected to fail."""
    file, name = place.split("::")
    test = functions(file)[name]
    assert not [each for each in map(ast.unparse, test.decorator_list) if PASSED_OVER.search(each.split("(")[0])]


@pytest.mark.parametrize("file", sorted({place.split("::")[0] for place in (*FAULTS.values(), *BAD_INPUT.values())} | {REMOTE}))
def test_no_file_of_rows_is_passed_over(file):
    for node in ast.parse(FILES[file]).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            assert not PASSED_OVER.search(ast.unparse(node.value))
        assert "importorskip" not in (ast.unparse(node) if isinstance(node, ast.Assign | ast.Expr) else "")
