"""What the widgets share: their base class, the joining of JavaScript modules, and examples."""
