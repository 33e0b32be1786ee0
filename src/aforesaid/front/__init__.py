"""The parts of the public API, one subject each. They share one handle (`handle`) and one set of services."""
