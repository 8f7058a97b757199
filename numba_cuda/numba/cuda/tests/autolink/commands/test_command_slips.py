# SPDX-License-Identifier: BSD-2-Clause
"""What the command line says to do about slips that are easily made."""

import pytest
from numba import types
from numba.cuda.autolink.frontend_api.signature_messages import describe_refused
from numba.cuda.autolink.many_kernels.jobs import Job

from numba_cuda_autolink.commands.main_command import main


@pytest.fixture
def said(capfd, tmp_path):
    """Give a function that runs the command line and returns its exit code and what it writes to stderr."""
    path = tmp_path / "ends.py"
    path.write_text("import os\n\nos._exit(0)\n")

    def run(*arguments):
        try:
            code = main([each.replace("ends.py", str(path)) for each in arguments])
        except SystemExit as error:
            code = error.code
        return code, capfd.readouterr()

    return run


def test_a_longer_name_of_an_option_gets_the_option(said):
    code, output = said("build", "m.py:k", "--signature", "void(int32)", "--cc", "9.0")
    assert code == 2
    assert output.err.splitlines()[0].endswith("; did you mean --sig?")


def test_arguments_of_cache_clear_are_not_taken_for_a_folder(said):
    code, output = said("cache", "clear", "all")
    assert code == 2
    assert "=all" not in output.err
    assert "what to do: cache clear removes all, and takes no names; cache prune SIZE keeps" in output.err


def test_another_action_of_the_cache_is_answered_with_those_that_list(said):
    code, output = said("cache", "list")
    assert code == 2
    assert "what to do: cache why lists what was built, cache info how much there is of each kind" in output.err


def test_the_cache_commands_say_what_they_find(said, tmp_path, monkeypatch):
    from numba.cuda.cudadrv.external_code.cache.store import reset_store

    monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "cache" / "entries").mkdir(parents=True, mode=0o700)
    (tmp_path / "k.py").write_text("x = 1")
    before = reset_store()
    try:
        code, output = said("cache", "export", str(tmp_path / "out"))
        assert (code, "is empty: there is nothing to export" in output.err) == (1, True)
        assert not (tmp_path / "out").exists()
        code, output = said("cache", "import", str(tmp_path / "k.py"))
        assert (code, "k.py is not a file of cache entries" in output.err) == (1, True)
        reset_store()
        monkeypatch.setenv("NUMBA_CUDA_AUTOLINK_CACHE", "0")
        code, output = said("cache", "info")
        assert (code, "(off: what is in it is not used)\n" in output.out, "0 entries" in output.out) == (0, True, False)
    finally:
        reset_store(before)


def test_help_is_a_command_too(said):
    _, output = said("help", "build")
    assert output.out.startswith("usage: numba-cuda-autolink build")


def test_a_file_that_ends_the_process_is_an_error(said):
    code, output = said("build", "ends.py:k", "--sig", "void(int32)", "--cc", "9.0", "-o", "k.cubin")
    assert code == 1
    assert "ends.py:3: the file exits when it is imported: SystemExit(0)" in output.err


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("array(float32, 1d, C)", "void(float32[::1])"),
        ("void(array(float64, 2d, F), int32)", "void(float64[::1, :], int32)"),
        ("void(np.float32[::1])", "void(float32[::1])"),
        ("void(float)", "void(float64)"),
        ("void(int, bool)", "void(int64, boolean)"),
    ],
)
def test_signatures_in_other_forms_are_translated(given, meant):
    message = describe_refused(given, ValueError("no"), vars(types))
    assert message.splitlines()[1] == f"  what to do: write {meant!r}"


def test_an_unknown_type_is_not_translated():
    assert "write the types, such as" in describe_refused("void(np.flot32)", ValueError("no"), vars(types))


def test_jobs_have_signatures_as_they_are_written():
    assert str(Job(max, (types.float32[::1], types.int32), (9, 0))) == "max with (float32[::1], int32) for (9, 0)"
