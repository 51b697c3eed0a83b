"""The style sheet of reports; `report_page` puts it into the page."""

STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1c2128; --quiet: #57606a; --line: #d5dae0;
  --soft: #f3f5f7; --track: #e6eaee; --fill: #2f6db3; --band: #9cc1ea; --note: #fff6dd;
  --note-ink: #5a4300; }
@media (prefers-color-scheme: dark) { :root { --page: #15181d; --ink: #e4e8ee; --quiet: #a0a9b5;
  --line: #343b45; --soft: #1d222a; --track: #2a313b; --fill: #6aa9f0; --band: #35577f;
  --note: #3a3115; --note-ink: #f5dd9a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
h3 { font-size: .95rem; margin: .4rem 0; color: var(--quiet); font-weight: 600; }
p { margin: .4rem 0; overflow-wrap: anywhere; } small, .small, .lead { color: var(--quiet); }
.note { background: var(--note); color: var(--note-ink); border-radius: 6px;
  padding: .5rem .8rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr));
  gap: .7rem; margin-top: 1.2rem; }
.tile { border: 1px solid var(--line); border-radius: 8px; padding: .6rem .8rem;
  background: var(--soft); min-width: 0; }
.tile .name, .tile .small { font-size: .82rem; color: var(--quiet); overflow-wrap: anywhere; }
.tile .big { font-size: 1.5rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr));
  gap: 0 2rem; }
.rows { display: grid; gap: .35rem; }
.row { display: grid; grid-template-columns: 8rem 1fr auto; gap: .7rem; align-items: center; }
.row .label { font-size: .88rem; overflow-wrap: anywhere; }
.row .said { font-variant-numeric: tabular-nums; font-size: .88rem; text-align: right;
  min-width: 3.5rem; }
.track { position: relative; height: .9rem; background: var(--track); border-radius: 3px;
  overflow: hidden; }
.fill, .band, .mark { position: absolute; top: 0; bottom: 0; }
.fill { left: 0; background: var(--fill); } .band { background: var(--band); }
.mark { width: 4px; margin-left: -2px; background: var(--fill); }
.scroll { overflow: auto; border: 1px solid var(--line); border-radius: 8px; }
.scroll.tall { max-height: 34rem; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; }
th, td { padding: .35rem .7rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; }
.wide td:first-child { white-space: normal; overflow-wrap: anywhere; }
thead th { position: sticky; top: 0; background: var(--soft); font-weight: 600; }
tbody tr:last-child td { border-bottom: 0; }
code, pre { font: .84rem/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 6px; margin: .4rem 0;
  padding: .6rem .8rem; white-space: pre-wrap; overflow-wrap: anywhere; max-height: 24rem;
  overflow: auto; }
pre.quiet { color: var(--quiet); } details { margin: .4rem 0; }
summary { cursor: pointer; padding: .2rem 0; font-weight: 600; }
.example { border-left: 3px solid var(--line); padding-left: .8rem; margin: .8rem 0; }
@media (max-width: 34rem) { .row { grid-template-columns: 7rem 1fr auto; gap: .2rem .5rem; }
  .estimates .row { grid-template-columns: 5rem 1fr; margin-bottom: .3rem; }
  .estimates .track { grid-column: 1 / -1; order: 1; } }
"""
