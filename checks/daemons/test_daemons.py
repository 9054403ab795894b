"""What the checks make of what they saw; no root, no network: python3 -m unittest discover -s checks/daemons"""
import pathlib
import struct
import tempfile
import unittest

import page
import probe
import table
from routing import Frr
from traffic import Flow, records

MS = 1_000_000


class OfAFlow(unittest.TestCase):
    sent = {number: number * MS for number in range(10)}

    def test_all_arrived(self):
        flow = Flow(self.sent, list(range(10)))
        self.assertEqual((flow.sent, flow.lost, flow.gap_ms, flow.last_lost_ns, flow.twice, flow.overtaken),
                         (10, 0, 0, None, 0, 0))

    def test_a_gap_lasts_from_the_last_before_it_to_the_first_after(self):
        flow = Flow(self.sent, [0, 1, 2, 5, 6, 7, 9])
        self.assertEqual((flow.lost, flow.gap_ms, flow.last_lost_ns), (3, 3, 8 * MS))

    def test_a_gap_that_does_not_end_lasts_to_the_last(self):
        flow = Flow(self.sent, [0, 1, 2])
        self.assertEqual((flow.lost, flow.gap_ms, flow.last_lost_ns), (7, 7, 9 * MS))

    def test_copies_strangers_and_the_overtaken(self):
        flow = Flow(self.sent, [0, 2, 1, 3, 3, 4, 5, 6, 7, 8, 9, 77])
        self.assertEqual((flow.lost, flow.twice, flow.unasked, flow.overtaken), (0, 1, 1, 1))

    def test_a_record_that_was_cut_off_is_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "records"
            file.write_bytes(probe.RECORD.pack(1, 2, 3, 4) + struct.pack("=BI", 5, 6))
            self.assertEqual(list(records(file)), [(1, 2, 3, 4)])


class OfATable(unittest.TestCase):
    def test_prefixes_are_distinct_networks_apart_from_the_links(self):
        names = list(table.prefixes(300_000))
        self.assertEqual(len(set(names)), len(names))
        self.assertTrue(all(16 <= int(name.split(".")[0]) < 80 and name.endswith(".0") for name in names))


class OfFrr(unittest.TestCase):
    def test_daemons_are_those_of_the_file_zebra_first(self):
        daemons = Frr.daemons()
        self.assertEqual(list(daemons), ["zebra", "staticd", "bgpd", "ospfd", "ospf6d", "bfdd"])
        self.assertIn("-r", daemons["zebra"])


class OfThePage(unittest.TestCase):
    part = {"runs": [{"date": "2026-01-01 00:00", "load": 1.5, "quick": True, "took_s": 3}]}
    about = {"processors": 2, "model": "a processor", "kernel": "6.12", "frr": "8.4", "bird": "2.0", "causeway": "0.1"}

    def test_it_says_what_is_not_well_and_under_which_load(self):
        row = {"daemon": "FRR", "mode": "kernel", "seconds": 9, "sent_per_second": 5, "arrived_per_second": 4,
               "forwarded_per_second": 3, "bfd_lost": [0, 2], "down": [], "ok": False}
        text = page.page({"machine": self.about, "parts": {"overload": self.part | {"rows": [row]}}})
        self.assertIn("| FRR | kernel | 9 | 5 | 4 | 3 | 2 | none | **not well** |", text)
        self.assertIn("load 1.5, quick", text)

    def test_a_part_that_ended_early_is_said(self):
        text = page.page({"machine": self.about, "parts": {"learn": self.part | {"rows": [], "error": "no bird"}}})
        self.assertIn("**Not all of it was done**: no bird", text)


if __name__ == "__main__":
    unittest.main()
