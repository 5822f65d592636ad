"""Two threads that compile leave the process as it was."""

from __future__ import annotations

import os
import threading

from shardnb.compiler.dumps import captured_fd2


def test_two_threads_that_catch_descriptor_2_give_it_back():
    before = os.fstat(2)
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with captured_fd2():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    threading.Timer(0.05, leave.set).start()
    with captured_fd2() as caught:
        os.write(2, b"mine")
    thread.join(10)
    after = os.fstat(2)
    assert caught == ["mine"]
    assert (after.st_dev, after.st_ino) == (before.st_dev, before.st_ino)
