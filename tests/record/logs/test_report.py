"""The report: what exit codes and sums are made of."""

from onrecord.record.logs.report import NO_RECORDS, ImportReport


def part(*codes, accounting=NO_RECORDS, format="diary"):
    findings = [
        {"code": code, "severity": severity, "file": "a", "count": 1, "message": "", "action": "", **more}
        for code, severity, more in codes
    ]
    return {
        "file": "a",
        "format": format,
        "bytes": 7,
        "sessions": [],
        "accounting": accounting,
        "findings": findings,
    }


class TestImportReport:
    def test_sums(self):
        """A-03: the sums are those of all files; a file without an account counts nothing."""
        account = {**NO_RECORDS, "records": 6, "mapped": 3, "duplicates": 2, "reported": 1}
        totals = ImportReport(files=[part(accounting=account), part(accounting=None, format=None)]).totals()
        assert (totals["files"], totals["records"], totals["bytes"], totals["not_imported"]) == (2, 6, 14, 1)
        assert totals["records"] == totals["mapped"] + totals["duplicates"] + totals["reported"]

    def test_severities(self):
        """Findings are compared with the threshold over all files."""
        report = ImportReport(files=[part(("bom", "info", {})), part(("odd-shape", "warning", {}))])
        assert report.reaches("info")
        assert report.reaches("warning")
        assert not report.reaches("error")
        assert not report.has_fatal
        assert not report.has_failed

    def test_faults(self):
        """A fatal finding and a fault of ours are told apart."""
        fatal = ImportReport(files=[part(("unreadable-file", "error", {"fatal": True}))])
        failed = ImportReport(files=[part(("importer-failed", "error", {}))])
        assert (fatal.has_fatal, fatal.has_failed) == (True, False)
        assert (failed.has_fatal, failed.has_failed) == (False, True)

    def test_interrupted(self):
        """An interrupted import says so in the document."""
        assert ImportReport(is_interrupted=True).to_json()["interrupted"] is True
        assert "interrupted" not in ImportReport().to_json()
