"""What a page shows of scores, found out from the runs behind them; report/page lays it out."""
