"""The statistics of one (attack, target model) pair: pure functions of arrays, no Django."""
