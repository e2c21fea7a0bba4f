"""The parts of a screen: each paints what a view says and knows neither engine nor link."""
